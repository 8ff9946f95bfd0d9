"""`weft import`: what `weft export` wrote, back into an empty store."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from weft.cli.options import AsJson, err, show_counts
from weft.cli.stores import with_store

app = typer.Typer(add_completion=False)


@app.command("import")
def import_folder(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="A folder that `weft export` wrote.")],
    as_json: AsJson = False,
) -> None:
    """Read a folder that was exported into a store with nothing in it yet: all of it, or nothing."""
    with err.status("Importing"):
        counts = with_store(lambda store: store.restore_export(Path(folder).expanduser().absolute()))
    show_counts(counts, as_json=as_json)
    if counts.get("auth_tokens") or counts.get("auth_pairings"):
        typer.echo(
            "weft: It brought tokens or paired people, who may ask from now on: check `weft token list` and "
            "`weft pair`.",
            err=True,
        )
