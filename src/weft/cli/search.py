"""`weft search`: everything that is kept, of everyone. The person at the terminal is the operator."""

from __future__ import annotations

from typing import Annotated

import typer

from weft.cli.memory import Mode, show_hits
from weft.cli.options import AsJson
from weft.cli.stores import with_store
from weft.types.search import SearchMode, SearchOptions

app = typer.Typer(add_completion=False)


@app.command()
def search(
    query: Annotated[str, typer.Argument(metavar="QUERY")],
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="How many hits.")] = 10,
    mode: Mode = SearchMode.AUTO,
    as_json: AsJson = False,
) -> None:
    """Search all messages, blocks and notes that are kept."""
    options = SearchOptions(limit=limit, mode=mode)
    hits = with_store(lambda store: store.memory.search_all(query, options, operator=True))
    show_hits(hits, as_json=as_json)
