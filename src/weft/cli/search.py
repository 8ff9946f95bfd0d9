"""`weft search`: everything that is kept, of everyone. The person at the terminal is the operator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, Any
from zoneinfo import ZoneInfo

import typer
from rich.text import Text

from weft.cli.highlight import highlighted
from weft.cli.memory import Mode
from weft.cli.options import AsJson, out, refuse_empty, settings
from weft.cli.stores import with_store
from weft.memory.base import Store
from weft.recall.explain import explained
from weft.recall.fuse import excerpt
from weft.recall.search_filter import KINDS, read_kinds
from weft.recall.searcher import MOST_AROUND, MOST_HITS
from weft.store.base import Scope
from weft.types.codec import dump_json, to_dict
from weft.types.escape import one_line, printable
from weft.types.person import person_of
from weft.types.search import (
    FactType,
    MemorySearchResult,
    NearLine,
    SearchContentType,
    SearchMode,
    SearchQuery,
)

app = typer.Typer(add_completion=False)
_ID_CHARS, _NEAR_CHARS = 24, 160
_DAY_HELP = "A date such as 2026-05-01, or words such as 'last week'."


@app.command()
def search(
    query: Annotated[str, typer.Argument(metavar="QUERY", callback=refuse_empty)],
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=MOST_HITS, help="How many hits.")] = 10,
    mode: Mode = SearchMode.AUTO,
    since: Annotated[str, typer.Option("--since", metavar="DAY", help=_DAY_HELP, callback=refuse_empty)] = "",
    until: Annotated[
        str,
        typer.Option("--until", metavar="DAY", help="The last day, written so too.", callback=refuse_empty),
    ] = "",
    who: Annotated[
        str,
        typer.Option(
            "--who", metavar="NAME", help="Who said it: a name, me, user or assistant.", callback=refuse_empty
        ),
    ] = "",
    places: Annotated[
        str,
        typer.Option(
            "--in",
            metavar="KINDS",
            help=f"Some of {','.join(KINDS)}, with commas.",
            autocompletion=lambda: list(KINDS),
            callback=refuse_empty,
        ),
    ] = "",
    around: Annotated[
        int,
        typer.Option(
            "--around", metavar="N", min=0, max=MOST_AROUND, help="Show N messages before and after each hit."
        ),
    ] = 0,
    as_json: AsJson = False,
) -> None:
    """Search all messages, blocks, notes and facts, and say why each hit was found."""
    kinds = read_kinds(places, who=who)
    wanted = SearchQuery(text=query, mode=mode, sources=kinds, limit=limit, around=around)
    now = datetime.now(_zone(settings().time_zone))

    async def work(store: Store) -> Sequence[MemorySearchResult]:
        scope = Scope(everyone=True)
        only = await store.searcher.read_filter(scope, since=since, until=until, who=who, now=now)
        return await store.search(wanted, replace(scope, only=only))

    hits = with_store(work)
    if as_json:
        typer.echo(dump_json([_to_dict(hit) for hit in hits]))
        return
    for number, hit in enumerate(hits):
        if number:
            out.print()
        _show(hit, query)
    if not hits:
        out.print("Nothing was found.")


def _zone(name: str) -> Any:
    """Return a time zone of the settings, whose name was checked when they were loaded."""
    try:
        return ZoneInfo(name)
    except (OSError, ValueError):  # this machine has no table of zones
        return UTC


def _to_dict(hit: MemorySearchResult) -> dict[str, Any]:
    row = {
        "source": hit.source,
        "id": hit.id,
        "session": hit.session_id,
        "place": hit.place,
        "speaker": hit.speaker,
        "label": hit.label,
        "owner": hit.owner,
        "at": None if hit.at is None else hit.at.isoformat(),
        "ended_at": None if hit.ended_at is None else hit.ended_at.isoformat(),
        "score": hit.score,
        "mode": hit.mode,
        "reasons": dict(hit.reasons),
        "content": hit.content,
    }
    return row | ({"around": to_dict(hit.around)} if hit.around else {})


def _show(hit: MemorySearchResult, query: str) -> None:
    name, place = (printable(one_line(part)) for part in _place(hit))
    when = f"{hit.at.astimezone():%Y-%m-%d %H:%M}  " if hit.at else ""
    head = Text.assemble((when, "dim"), (name, "bold"), (f"  {place}  {hit.score:.2f}", "dim"))
    out.print(head, soft_wrap=True)
    if hit.around:
        for line in hit.around:
            out.print(_near(line, query), soft_wrap=True)
    else:
        out.print(Text("  ") + highlighted(printable(hit.snippet), query), soft_wrap=True)
    if why := explained(hit):
        out.print(Text(f"  why: {why}", style="dim"), soft_wrap=True)


def _place(hit: MemorySearchResult) -> tuple[str, str]:
    """Return who said it, or what it is, and where it is."""
    owner = person_of(hit.owner) or hit.owner
    if hit.source == SearchContentType.MESSAGES:
        return hit.speaker, f"session {hit.session_id[:_ID_CHARS]}"
    if hit.source == FactType.FACTS:
        ended = f", was so until {hit.ended_at.astimezone():%Y-%m-%d}" if hit.ended_at else ""
        return f"fact {hit.label}", f"about {owner}{ended}"
    is_block = hit.source == SearchContentType.BLOCKS
    return f"block {hit.label}" if is_block else f"note {hit.id[:_ID_CHARS]}", f"of {owner}"


def _near(line: NearLine, query: str) -> Text:
    text = printable(excerpt(query if line.is_hit else "", one_line(line.content), _NEAR_CHARS))
    when = f"{line.at.astimezone():%H:%M} " if line.at else ""
    start = f"{when}{printable(one_line(line.speaker))}: "
    if line.is_hit:
        return Text(f"> {start}") + highlighted(text, query)
    return Text(f"  {start}{text}", style="dim")
