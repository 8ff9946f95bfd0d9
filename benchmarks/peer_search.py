"""Times storing and searching messages with Weft beside other search engines and memory libraries.

All get the same texts and the same queries, and take turns. A write is durable when its time is taken, except
where an engine has no file. What would take minutes for the large log is measured with a small one, beside
Weft with the same small one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.progress import Progress

from chatter import Chatter
from search_engines import Bm25s, Engine, PlainFts5, WeftBoth, WeftMeaning, WeftRecall, WeftWords
from timing import arguments, at_least, milliseconds, out, p50, p95, table, versions, workplace, write_json
from vector_engines import Mem0, SqliteVec, SqliteVecBits
from weft import Message

_PACKAGES = ("weft", "apsw", "bm25s", "numba", "sqlite-vec", "wordllama", "mem0ai", "qdrant-client")
_WARM_UP = 5
ENGINES: tuple[type[Engine], ...] = (
    WeftWords,
    PlainFts5,
    Bm25s,
    WeftRecall,
    WeftMeaning,
    WeftBoth,
    SqliteVec,
    SqliteVecBits,
)
SLOW_ENGINES: tuple[type[Engine], ...] = (WeftMeaning, WeftBoth, Mem0)
"""Compared at a smaller size: a search of mem0 takes longer with each message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineRow:
    """One engine over one log. `add_ms` is storing one more message and a search that can find it.

    `bytes_per_message` is what it has on disk for each. `finds_new` is the share of messages just added that
    a search for their words had among its hits.
    """

    name: str
    kind: str
    messages: int
    stored_per_second: float | None = None
    add_ms: float | None = None
    search_p50_ms: float | None = None
    search_p95_ms: float | None = None
    bytes_per_message: float = 0.0
    finds_new: float = 0.0
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerSearchReport:
    """All that one run measured."""

    versions: dict[str, str]
    rows: tuple[EngineRow, ...]


@dataclass(slots=True)
class _Samples:
    filled_ms: float = 0.0
    adds: list[float] = field(default_factory=list)
    searches: list[float] = field(default_factory=list)
    new_hits: int = 0
    size: int = 0


async def measure(
    folder: Path, kinds: Sequence[type[Engine]], size: int, queries: int, progress: Progress
) -> tuple[EngineRow, ...]:
    """Fill all engines that are installed, then search and add in turns."""
    await asyncio.to_thread(folder.mkdir)
    chatter, samples = Chatter(), {kind: _Samples() for kind in kinds}
    messages = chatter.messages(size)
    engines = [kind() for kind in kinds if kind.is_installed()]
    for engine in progress.track(engines, description=f"storing {size:,} messages"):
        await engine.open(folder)
        own = samples[type(engine)]
        if engine.shares is not None:
            own.filled_ms = samples[engine.shares].filled_ms
        else:
            own.filled_ms = await milliseconds(engine.fill(messages))
        own.size = engine.size()
        for _ in range(_WARM_UP):
            await engine.search(chatter.query())
    for at in progress.track(range(queries), description=f"searching {size:,} messages"):
        words = chatter.query()
        for engine in engines[at % len(engines) :] + engines[: at % len(engines)]:
            samples[type(engine)].searches.append(await milliseconds(engine.search(words)))
    for at in progress.track(range(max(kind.adds for kind in kinds)), description="adding"):
        for engine in engines:
            if at < engine.adds:
                await _add(engine, chatter, samples[type(engine)])
    for engine in engines:
        await engine.close()
    return tuple(_row(kind, size, samples[kind]) for kind in kinds)


async def _add(engine: Engine, chatter: Chatter, samples: _Samples) -> None:
    """Store one message and search for four of its words, timed; then look for it with all of them."""
    [message] = chatter.messages(1)
    words = message.content.split()
    samples.adds.append(await milliseconds(_add_and_search(engine, message, words[-4:])))
    samples.new_hits += message.content in await engine.search(words)


async def _add_and_search(engine: Engine, message: Message, words: Sequence[str]) -> None:
    await engine.add(message)
    await engine.search(words)


def _row(kind: type[Engine], size: int, samples: _Samples) -> EngineRow:
    if not samples.searches:
        return EngineRow(name=kind.name, kind=kind.kind, messages=size, note="not installed")
    return EngineRow(
        name=kind.name,
        kind=kind.kind,
        messages=size,
        stored_per_second=size / samples.filled_ms * 1000,
        add_ms=p50(samples.adds),
        search_p50_ms=p50(samples.searches),
        search_p95_ms=p95(samples.searches),
        bytes_per_message=samples.size / size,
        finds_new=samples.new_hits / len(samples.adds),
    )


def _show(report: PeerSearchReport) -> None:
    shown = table("what", "messages", "stored", "one more", "found", "search p50", "p95", "disk/message")
    for row in report.rows:
        if row.stored_per_second is None or row.add_ms is None:
            shown.add_row(row.name, f"{row.messages:,}", row.note)
            continue
        shown.add_row(
            row.name,
            f"{row.messages:,}",
            f"{row.stored_per_second:,.0f}/s",
            f"{row.add_ms:.2f} ms",
            f"{row.finds_new:.0%}",
            f"{row.search_p50_ms:.2f} ms",
            f"{row.search_p95_ms:.2f} ms",
            f"{row.bytes_per_message:,.0f} B",
        )
    out.print(shown)


async def _all(folder: Path, sizes: tuple[int, int], queries: int, progress: Progress) -> PeerSearchReport:
    large, small = sizes
    rows = await measure(folder / "large", ENGINES, large, queries, progress)
    rows += await measure(folder / "small", SLOW_ENGINES, small, queries, progress)
    return PeerSearchReport(versions=versions(*_PACKAGES), rows=rows)


def main() -> None:
    parser = arguments("Time storing and searching beside other search engines and memory libraries.")
    parser.add_argument("--messages", type=at_least(10), default=100_000, help="messages of the large log")
    small = "messages of the small log, for what is too slow for the large one"
    parser.add_argument("--small", type=at_least(10), default=5_000, help=small)
    parser.add_argument("--queries", type=at_least(5), default=100, help="searches of each engine")
    options = parser.parse_args()
    with workplace() as (folder, progress):
        sizes = (options.messages, options.small)
        report = asyncio.run(_all(folder, sizes, options.queries, progress))
    write_json(options.json, report)
    _show(report)


if __name__ == "__main__":
    main()
