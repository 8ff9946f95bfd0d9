"""`weft recipes`: the recipes there are, and whether one that you wrote is valid."""

from __future__ import annotations

import json
from pathlib import Path

import typer
from rich.table import Table

from weft.cli.options import AsJson, out, safe, say
from weft.errors import ConfigError, did_you_mean
from weft.sources.catalogue import check_sources
from weft.types.recipe import Recipe, packaged, packaged_text, read_recipe_text

app = typer.Typer(add_completion=False, no_args_is_help=True, help="List, show and check recipes.")


@app.command("list")
def list_recipes(as_json: AsJson = False) -> None:
    """List the recipes that come with Weft."""
    recipes = [Recipe.load(name) for name in packaged()]
    if as_json:
        typer.echo(json.dumps([{"name": r.name, "description": r.description} for r in recipes]))
        return
    table = Table(box=None, show_header=False, pad_edge=False)
    for recipe in recipes:
        table.add_row(f"[bold]{safe(recipe.name)}[/]", safe(recipe.description))
    out.print(table)


@app.command()
def show(
    name: str = typer.Argument(metavar="NAME|FILE", autocompletion=packaged), as_json: AsJson = False
) -> None:
    """Print a recipe as TOML: the start of one of your own."""
    if as_json:
        typer.echo(Recipe.load(name).to_json())
    elif name in packaged():
        typer.echo(packaged_text(name).rstrip())
    elif Path(name).is_file():
        say(read_recipe_text(Path(name)).rstrip())
    else:
        raise ConfigError(f"There is no recipe {name!r}: {did_you_mean(name, packaged())}")


@app.command()
def validate(path: str = typer.Argument(metavar="FILE")) -> None:
    """Check a recipe of your own and say what it would do."""
    if Path(path).is_dir():
        raise ConfigError(f"{path} is a folder: name the TOML file of a recipe.")
    recipe = Recipe.load(path)
    check_sources(recipe)
    sources = [layer.source for layer in recipe.layers]
    order = [sources[at] for at in recipe.order_of_giving_way()]
    out.print(f"[green]valid[/] {safe(recipe.name)}: {' > '.join(sources)}", soft_wrap=True)
    out.print(f"[dim]gives way in this order: {', '.join(order)}[/]", soft_wrap=True)
