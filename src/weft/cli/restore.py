"""`weft restore`: a backup in the place of the database."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from weft.cli.options import AsJson, err, run, say, settings
from weft.compose import restore as restore_backup

app = typer.Typer(add_completion=False)


@app.command()
def restore(
    path: Annotated[str, typer.Argument(metavar="PATH", help="A file that `weft backup` wrote.")],
    as_json: AsJson = False,
) -> None:
    """Put a backup in the place of the database; the old one is kept beside it."""
    database, backup = settings().paths.database, Path(path).expanduser().absolute()
    with err.status("Restoring"):
        old = run(restore_backup(database, backup))
    if as_json:
        typer.echo(json.dumps({"database": str(database), "old": None if old is None else str(old)}))
        return
    say(f"{database} is now what {backup} holds.")
    if old is not None:
        say(f"The database that was there before is {old}: delete it when you no longer need it.")
