"""Our search beside plain full-text search over the same texts, query by query.

The plain one is a table, an FTS5 index over it and one statement. It runs in a worker thread as ours does,
and is timed from inside that thread as well. Its connection has the settings of the store's.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw
from rich.progress import Progress

from chatter import Chatter
from timing import p50, p95
from weft import Message, Store

SEARCH_GOAL = 1.3
LIMIT = 10
WARM_UP = 5
"""Queries before the clock starts, at every size: connections are open, and statements are prepared."""

_TABLES = """
    create table texts(id integer primary key, text text not null);
    create virtual table texts_fts using fts5(
        text, content = 'texts', content_rowid = 'id', tokenize = 'porter unicode61'
    );
"""
_PLAIN = (
    "select texts.id, texts.text, bm25(texts_fts) from texts_fts join texts on texts.id = texts_fts.rowid "
    "where texts_fts match ? order by bm25(texts_fts) limit ?"
)
_LEAN = (
    "select texts.id, texts.text, score from (select rowid as hit, bm25(texts_fts) as score from texts_fts "
    "where texts_fts match ? order by score limit ?) join texts on texts.id = hit order by score"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRow:
    """One size. `raw` is the plain statement, `lean` the fastest one we know: it picks before it joins.

    `inside` is the raw time without the way into the thread and back. `agreement` is the share of hits that
    ours and the raw statement have in common: below 1 where texts score the same.
    """

    messages: int
    queries: int
    ours_p50_ms: float
    ours_p95_ms: float
    raw_p50_ms: float
    raw_p95_ms: float
    raw_inside_p50_ms: float
    lean_p50_ms: float
    ratio: float
    ratio_to_raw_inside: float
    ratio_to_lean: float
    agreement: float


@dataclass(frozen=True, slots=True)
class _Timed:
    """The hits of a query and its time: in all, and inside its thread if that is known."""

    hits: frozenset[str]
    whole_ms: float
    inside_ms: float = 0.0


@dataclass(slots=True)
class _Samples:
    ours: list[_Timed] = field(default_factory=list)
    raw: list[_Timed] = field(default_factory=list)
    lean: list[_Timed] = field(default_factory=list)


class PlainIndex:
    """The same texts in a file of their own, with nothing but an FTS5 index."""

    def __init__(self, path: Path) -> None:
        self._db = bare_connection(path)
        self._db.execute(_TABLES)

    async def add(self, messages: Sequence[Message]) -> None:
        rows = [(message.content,) for message in messages]

        def work() -> None:
            with self._db:
                before = self._db.execute("select coalesce(max(id), 0) from texts").get
                self._db.executemany("insert into texts(text) values(?)", rows)
                self._db.execute(
                    "insert into texts_fts(rowid, text) select id, text from texts where id > ?", (before,)
                )

        await asyncio.to_thread(work)

    def close(self) -> None:
        self._db.close()

    async def search(self, words: Sequence[str], statement: str) -> _Timed:
        match = " OR ".join(f'"{word}"' for word in words)

        def work() -> tuple[list[tuple[Any, ...]], float]:
            started = time.perf_counter()
            rows = list(self._db.execute(statement, (match, LIMIT)))
            return rows, (time.perf_counter() - started) * 1000

        started = time.perf_counter()
        rows, inside_ms = await asyncio.to_thread(work)
        return _Timed(frozenset(row[1] for row in rows), (time.perf_counter() - started) * 1000, inside_ms)


def bare_connection(path: Path) -> apsw.Connection:
    """Open a file with the settings of the store: WAL, and a commit is on disk when it returns."""
    db = apsw.Connection(str(path))
    db.pragma("journal_mode", "wal")
    db.pragma("synchronous", "full")
    return db


@dataclass(frozen=True, slots=True)
class SearchBench:
    """Two files with the same texts, searched in turns."""

    store: Store
    agent_id: str
    plain: PlainIndex
    chatter: Chatter

    async def measure(self, messages: int, queries: int, progress: Progress) -> SearchRow:
        """Ask each query in all ways, each way first in its turn, so that a slow minute slows all of them."""
        for _ in range(WARM_UP):
            await self._ask(_Samples(), 0)
        samples = _Samples()
        for at in progress.track(range(queries), description=f"searching {messages:,} messages"):
            await self._ask(samples, at)
        return _row(messages, samples)

    async def _ask(self, samples: _Samples, at: int) -> None:
        words = self.chatter.query()
        ways: list[tuple[list[_Timed], Callable[[], Awaitable[_Timed]]]] = [
            (samples.ours, lambda: self._ours(words)),
            (samples.raw, lambda: self.plain.search(words, _PLAIN)),
            (samples.lean, lambda: self.plain.search(words, _LEAN)),
        ]
        first = at % len(ways)
        for times, search in ways[first:] + ways[:first]:
            times.append(await search())

    async def _ours(self, words: Sequence[str]) -> _Timed:
        started = time.perf_counter()
        results = await self.store.memory.search(self.agent_id, " ".join(words))
        whole_ms = (time.perf_counter() - started) * 1000
        return _Timed(frozenset(result.content for result in results), whole_ms)


def _row(messages: int, samples: _Samples) -> SearchRow:
    ours, raw, lean = (
        [timed.whole_ms for timed in ways] for ways in (samples.ours, samples.raw, samples.lean)
    )
    inside = [timed.inside_ms for timed in samples.raw]
    pairs = list(zip(samples.ours, samples.raw, strict=True))
    common = sum(len(one.hits & other.hits) for one, other in pairs)
    return SearchRow(
        messages=messages,
        queries=len(ours),
        ours_p50_ms=p50(ours),
        ours_p95_ms=p95(ours),
        raw_p50_ms=p50(raw),
        raw_p95_ms=p95(raw),
        raw_inside_p50_ms=p50(inside),
        lean_p50_ms=p50(lean),
        ratio=p50(ours) / p50(raw),
        ratio_to_raw_inside=p50(ours) / p50(inside),
        ratio_to_lean=p50(ours) / p50(lean),
        agreement=common / max(sum(len(other.hits) for _, other in pairs), 1),
    )
