"""`weft export`: everything that is kept, as a folder of text."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from weft.cli.options import AsJson, err, show_counts
from weft.cli.stores import with_store

app = typer.Typer(add_completion=False)


@app.command()
def export(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="A folder that is not there yet.")],
    as_json: AsJson = False,
) -> None:
    """Write everything that is kept into a folder of JSON Lines and block texts."""
    with err.status("Exporting"):
        counts = with_store(lambda store: store.export(Path(folder).expanduser().absolute()))
    show_counts(counts, as_json=as_json)
