"""`weft docs`: the pages of the documentation, which are installed with the program."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markdown import Markdown

from weft.cli.options import out, safe
from weft.errors import ConfigError, did_you_mean

app = typer.Typer(add_completion=False)
_PACKAGE = Path(__file__).parent.parent
_FOLDERS = ("tutorial", "guides", "reference", "explanation")


@app.command()
def docs(
    page: Annotated[
        str | None,
        typer.Argument(metavar="PAGE", help="A name of the list.", autocompletion=lambda: list(list_pages())),
    ] = None,
    open_it: Annotated[bool, typer.Option("--open", help="Open the page in its usual program.")] = False,
) -> None:
    """Print a page of the documentation, or open it; without a name, list the pages."""
    pages = list_pages()
    if page is None:
        for name, file in pages.items():
            out.print(f"[bold]{safe(name)}[/]  {safe(_title(file))}", soft_wrap=True)
        return
    wanted = Path(page).stem
    if wanted not in pages:
        raise ConfigError(f"There is no page {page!r}: {did_you_mean(wanted, pages)}")
    path = pages[wanted]
    if open_it:
        if typer.launch(str(path)):
            raise ConfigError(f"No program opens {path}: leave `--open` out to read it here.")
    elif out.is_terminal:
        out.print(Markdown(path.read_text("utf-8")))
    else:
        typer.echo(path.read_text("utf-8"), nl=False)


def list_pages() -> dict[str, Path]:
    """Return the pages by name: those inside the package, or in a checkout those beside it."""
    root = next(path for path in (_PACKAGE / "docs", _PACKAGE.parent.parent / "docs") if path.is_dir())
    return {path.stem: path for folder in _FOLDERS for path in sorted((root / folder).rglob("*.md"))}


def _title(path: Path) -> str:
    with path.open(encoding="utf-8") as lines:
        return next(lines).lstrip("# ").rstrip()
