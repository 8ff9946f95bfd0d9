"""Measures how much of the evidence each way of searching finds: questions over long conversations.

PATH has conversations in the shape of LoCoMo, or in the other shape that `recall.py` reads. Each line is one
text; every way ranks the lines of one conversation for each question. Weft stores them as messages, and asks
as a turn does. The time of a question is measured in turns.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import apsw
from rich.progress import Progress

import weft
from recall import Asked, Result, Said, Talk, figures, read, split
from search_engines import load_bm25s, load_wordllama
from timing import arguments, out, table, versions, workplace, write_json
from weft.tokens import count
from weft.types.tokenize import STOP_WORDS, words

MEASURES = ("R@5", "R@10", "R@20", "R@1k", "R@4k", "MRR", "all@10")
_PACKAGES = ("weft", "apsw", "bm25s", "wordllama", "numpy")
_RANKED = 200
_RRF = 60
"""The constant of reciprocal rank fusion, as in the paper that names it and in most libraries."""
_SENDER = "app:owner"

Ranker = Callable[[str], Sequence[int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityRow:
    """One way to search. All measures are percents; the times are of one question."""

    name: str
    questions: int = 0
    measures: dict[str, float] | None = None
    p50_ms: float = 0.0
    p95_ms: float = 0.0
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityReport:
    """All that one run measured: the turns as they are, and each sentence as a message of its own."""

    versions: dict[str, str]
    conversations: int
    turns: tuple[QualityRow, ...]
    sentences: tuple[QualityRow, ...]


def searchable(line: Said) -> str:
    """Write a line with its date and speaker, which Weft gets too. Every other way finds more with them."""
    return f"{line.at:%d %B %Y} {line.speaker}: {line.text}"


def fts5(talk: Talk) -> Ranker:
    """Rank by plain full-text search with the stemmer of FTS5, without stop words."""
    db = apsw.Connection(":memory:")
    db.execute("create virtual table f using fts5(text, tokenize = 'porter unicode61')")
    db.executemany("insert into f(text) values(?)", [(searchable(line),) for line in talk.lines])
    query = "select rowid - 1 from f where f match ? order by rank limit ?"

    def ranker(question: str) -> Sequence[int]:
        asked = [word for word in words(question) if word not in STOP_WORDS]
        match = " OR ".join(f'"{word}"' for word in asked) or '""'
        return [row[0] for row in db.execute(query, (match, _RANKED))]

    return ranker


def bm25s(talk: Talk) -> Ranker:
    """Rank by bm25s with its English stop words and the stemmer that its documentation uses."""
    return load_bm25s([searchable(line) for line in talk.lines], stopwords="en", limit=_RANKED)


def wordllama(talk: Talk, embed: Callable[[Sequence[str]], Any]) -> Ranker:
    """Rank by the cosine of vectors."""
    vectors = embed([searchable(line) for line in talk.lines])
    vectors = vectors / (vectors**2).sum(axis=1, keepdims=True) ** 0.5

    def ranker(question: str) -> Sequence[int]:
        scores = vectors @ embed([question])[0]
        return [int(at) for at in (-scores).argsort()[:_RANKED]]

    return ranker


def fused(*rankers: Ranker) -> Ranker:
    """Fuse rankings by reciprocal ranks."""

    def ranker(question: str) -> Sequence[int]:
        scores: dict[int, float] = defaultdict(float)
        for one in rankers:
            for rank, at in enumerate(one(question), 1):
                scores[at] += 1 / (_RRF + rank)
        return sorted(scores, key=lambda at: -scores[at])[:_RANKED]

    return ranker


def rankers_of(talk: Talk, embed: Callable[[Sequence[str]], Any] | None) -> dict[str, Ranker]:
    """Make all rankers besides Weft whose packages are installed."""
    rankers: dict[str, Ranker] = {"FTS5": fts5(talk)}
    if importlib.util.find_spec("bm25s") and importlib.util.find_spec("Stemmer"):
        rankers["bm25s"] = bm25s(talk)
    if embed is not None:
        rankers["wordllama"] = wordllama(talk, embed)
        rankers["FTS5 + wordllama, rank fusion"] = fused(rankers["FTS5"], rankers["wordllama"])
        if "bm25s" in rankers:
            rankers["bm25s + wordllama, rank fusion"] = fused(rankers["bm25s"], rankers["wordllama"])
    return rankers


WAYS = (
    "Weft",
    "FTS5",
    "bm25s",
    "wordllama",
    "FTS5 + wordllama, rank fusion",
    "bm25s + wordllama, rank fusion",
)


async def measure(folder: Path, talks: Sequence[Talk], progress: Progress) -> tuple[QualityRow, ...]:
    """Ask every question in every way, each conversation in a store of its own."""
    embed = load_wordllama() if importlib.util.find_spec("wordllama") else None
    results: dict[str, list[Result]] = defaultdict(list)
    for number, talk in enumerate(talks):
        home = folder / str(number)
        home.mkdir(parents=True)
        os.environ["WEFT_HOME"] = str(home)
        rankers = rankers_of(talk, embed)
        prices = [price(line) for line in talk.lines]
        async with await weft.open(home / "weft.db") as store:
            names = await fill(store, talk)
            newest = max(line.at for line in talk.lines) + timedelta(days=1)
            for question in progress.track(talk.questions, description=f"asking, conversation {number + 1}"):
                results["Weft"].append(await ask(store, question, names, newest))
                for name, ranker in rankers.items():
                    results[name].append(_ranked(ranker, question, talk, prices))
    return tuple(_row(name, results.get(name, [])) for name in WAYS)


def price(line: Said) -> int:
    return count(f"- [{line.at:%Y-%m-%d}] {line.speaker}: {line.text}")


def _ranked(ranker: Ranker, question: Asked, talk: Talk, prices: Sequence[int]) -> Result:
    started = time.perf_counter()
    order = ranker(question.text)
    took = (time.perf_counter() - started) * 1000
    return Result(question, [(talk.lines[at].id, prices[at]) for at in order], milliseconds=took)


async def fill(store: weft.Store, talk: Talk) -> dict[str, str]:
    """Store a conversation. Returns the id of the line of each message."""
    names: dict[str, str] = {}
    sessions: dict[str, list[Said]] = defaultdict(list)
    for line in talk.lines:
        sessions[line.session].append(line)
    for name, lines in sessions.items():
        session = await store.sessions.new("app", name, "owner", agent_id="weft")
        messages = [
            weft.Message(role="user", content=one.text, name=one.speaker, timestamp=one.at) for one in lines
        ]
        await store.messages.append(session.id, *messages)
        names |= {f"{session.id}/{place}": one.id for place, one in enumerate(lines, 1)}
    return names


async def ask(store: weft.Store, question: Asked, names: dict[str, str], now: datetime) -> Result:
    """Ask as a turn does, with the defaults of the program."""
    started = time.perf_counter()
    hits = await store.recall.recall(question.text, sender=_SENDER, session_id="", limit=_RANKED, now=now)
    took = (time.perf_counter() - started) * 1000
    ranking = [
        (
            names.get(f"{hit.session_id}/{hit.place}", ""),
            count(f"- [{hit.timestamp:%Y-%m-%d}] {hit.speaker}: {hit.text}"),
        )
        for hit in hits
    ]
    return Result(question, ranking, milliseconds=took)


def _row(name: str, results: Sequence[Result]) -> QualityRow:
    """Take the means of the questions that have an answer: LoCoMo's category 5 asks for what was not said."""
    rows = figures(results) if results else {}
    if "1-4" not in rows:
        return QualityRow(name=name, note="not installed")
    means = rows["1-4"]
    measures = {key: means[key] for key in MEASURES}
    return QualityRow(
        name=name,
        questions=int(means["n"]),
        measures=measures,
        p50_ms=means["ms p50"],
        p95_ms=means["ms p95"],
    )


def _show(title: str, rows: Sequence[QualityRow]) -> None:
    shown = table("what", "questions", *MEASURES, "p50", "p95")
    for row in rows:
        if row.measures is None:
            shown.add_row(f"{title}: {row.name}", row.note)
            continue
        percents = (f"{row.measures[key]:.1f}" for key in MEASURES)
        times = (f"{row.p50_ms:.2f} ms", f"{row.p95_ms:.2f} ms")
        shown.add_row(f"{title}: {row.name}", str(row.questions), *percents, *times)
    out.print(shown)


def main() -> None:
    parser = arguments("Measure how much of the evidence each way of searching finds.")
    parser.add_argument("path", type=Path, nargs="?", help="conversations with questions, as JSON")
    options = parser.parse_args()
    if options.path is None:
        out.print("Retrieval quality is left out: name a file of conversations (LoCoMo's shape).")
        return
    talks = read(options.path)
    with workplace() as (folder, progress):
        turns = asyncio.run(measure(folder / "turns", talks, progress))
        cut = [split(talk) for talk in talks]
        sentences = asyncio.run(measure(folder / "sentences", cut, progress))
    report = QualityReport(
        versions=versions(*_PACKAGES), conversations=len(talks), turns=turns, sentences=sentences
    )
    write_json(options.json, report)
    _show("turns", turns)
    out.print()
    _show("sentences", sentences)


if __name__ == "__main__":
    main()
