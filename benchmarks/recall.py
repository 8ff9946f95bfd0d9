"""How much of the evidence recall finds: questions with known answers over long conversations.

Each line is stored as one message, and each question goes through the same search as a turn. PATH is a list
of conversations in the shape of LoCoMo (`conversation` and `qa`), or
`{"conversations": [{"messages": [{"id", "speaker", "text", "at", "session"}], "questions": [{"text",
"evidence", "category"}]}]}`.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import apsw
from rich.progress import Progress

import weft
from timing import arguments, at_least, out, p50, p95, table, workplace
from weft.compose import make_embedder
from weft.config import Config, SearchSettings
from weft.recall import weights
from weft.recall.embed import Embedder
from weft.tokens import count
from weft.types.tokenize import STOP_WORDS, words

TOP = (5, 10, 20, 50)
BUDGETS = {"R@1k": 1_000, "R@2k": 2_000, "R@4k": 4_000}
MEASURES = (*(f"R@{k}" for k in TOP), "all@10", "MRR", *BUDGETS, "shown")
_RANKED = 200
_GREETINGS = ("Good morning!", "How are you?")
Build = Callable[[str], Awaitable[weft.Context]]
_TIMES = ("%I:%M %p %d %B, %Y", "%d.%m.%Y, %H:%M:%S", "%d.%m.%Y, %H:%M")
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_SENDER = "app:owner"
SMALL_TALK = (
    "hi",
    "thanks!",
    "Good morning!",
    "ok",
    "lol",
    "How are you?",
    "see you tomorrow",
    "yes please",
    "sounds good",
    "haha nice",
    "good night",
    "great, thank you so much",
    "no worries",
    "sure, go on",
    "wow",
    "hello again",
)  # fmt: skipp


@dataclass(frozen=True, slots=True)
class Said:
    """A line of a conversation. In the variant with split turns several lines have one id."""

    id: str
    speaker: str
    text: str
    at: datetime
    session: str


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, and the ids of the lines that answer it."""

    text: str
    evidence: frozenset[str]
    category: str


@dataclass(frozen=True, slots=True)
class Talk:
    """A conversation with its questions."""

    lines: tuple[Said, ...]
    questions: tuple[Asked, ...]


@dataclass(slots=True)
class Result:
    """What a search found for one question: ids best first, each with its price, and what a turn showed."""

    question: Asked
    found: list[tuple[str, int]]
    shown: set[str] = field(default_factory=set)
    shown_tokens: int = 0
    milliseconds: float = 0.0

    def measures(self) -> dict[str, float]:
        gold, seen = self.question.evidence, list(dict.fromkeys(name for name, _ in self.found))
        figures = {f"R@{k}": len(gold & set(seen[:k])) / len(gold) for k in TOP}
        figures["all@10"] = float(gold <= set(seen[:10]))
        figures["MRR"] = next((1 / (at + 1) for at, name in enumerate(seen) if name in gold), 0.0)
        for name, budget in BUDGETS.items():
            figures[name] = len(gold & set(_within(self.found, budget))) / len(gold)
        figures["shown"] = len(gold & self.shown) / len(gold)
        return figures


@dataclass(frozen=True, slots=True)
class Unanswered:
    """A message to which the store has no answer, and how many tokens a turn recalled for it all the same."""

    kind: str
    tokens: int


def _within(found: Sequence[tuple[str, int]], budget: int) -> Iterator[str]:
    for name, price in found:
        budget -= price
        if budget < 0:
            return
        yield name


# --- reading


def read(path: Path) -> list[Talk]:
    """Read conversations of either shape."""
    data = json.loads(path.read_text("utf-8"))
    if isinstance(data, dict):
        return [_general(number, one) for number, one in enumerate(data["conversations"])]
    return [_locomo(one) for one in data]


def _general(number: int, data: dict[str, Any]) -> Talk:
    start = datetime(2024, 1, 1, tzinfo=UTC)
    lines = []
    for at, one in enumerate(data["messages"]):
        when = one.get("at") or one.get("timestamp") or one.get("date") or one.get("time")
        moment = _moment(when) if when else start + timedelta(minutes=at)
        session = str(one.get("session", moment.date()))
        speaker = str(one.get("speaker") or one.get("name") or one.get("role") or "")
        text = str(one.get("text") or one.get("content") or "")
        lines.append(Said(str(one.get("id", at)), speaker, text, moment, f"{number}/{session}"))
    known = {line.id for line in lines}
    questions = [
        Asked(
            str(one.get("text") or one["question"]),
            frozenset(map(str, one.get("evidence") or ())) & known,
            str(one.get("category", "1")),
        )
        for one in data["questions"]
    ]
    return Talk(tuple(lines), tuple(one for one in questions if one.evidence))


def _moment(when: Any) -> datetime:
    """Read a time: seconds since 1970, ISO, or one of the forms in which chats are published."""
    if isinstance(when, int | float):
        return datetime.fromtimestamp(when, UTC)
    for form in _TIMES:
        with suppress(ValueError):
            return datetime.strptime(str(when).replace(" on ", " "), form).replace(tzinfo=UTC)
    moment = datetime.fromisoformat(str(when))
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _locomo(data: dict[str, Any]) -> Talk:
    conversation, lines, number = data.get("conversation", data), list[Said](), 0
    while f"session_{(number := number + 1)}_date_time" in conversation:
        at = _moment(conversation[f"session_{number}_date_time"])
        for place, turn in enumerate(conversation.get(f"session_{number}", ())):
            caption = f" [photo: {turn['blip_caption']}]" if turn.get("blip_caption") else ""
            own = turn.get("date_time")
            when = _moment(own) if own else at + timedelta(seconds=30 * place)
            text = turn.get("text") or turn.get("clean_text") or ""
            lines.append(Said(turn["dia_id"], turn["speaker"], text + caption, when, f"s{number}"))
    known = {line.id for line in lines}
    questions = []
    for one in data["qa"]:
        named = re.findall(r"D\d+:\d+", " ".join(one.get("evidence") or ()).replace("D:", "D"))
        questions.append(Asked(one["question"], frozenset(named) & known, str(one["category"])))
    return Talk(tuple(lines), tuple(one for one in questions if one.evidence))


def split(talk: Talk) -> Talk:
    """Cut each turn into its sentences, as people write in real chats: several short messages in a row."""
    lines = []
    for line in talk.lines:
        parts = [part for part in _SENTENCE.split(line.text) if part.strip()] or [line.text]
        lines += [
            replace(line, text=part, at=line.at + timedelta(seconds=number))
            for number, part in enumerate(parts)
        ]
    return Talk(tuple(lines), talk.questions)


# --- searching


async def search(
    folder: Path, talks: Sequence[Talk], options: Any, progress: Progress
) -> tuple[list[Result], list[Unanswered]]:
    """Ask all questions: a store for each conversation, or one store for all of them.

    Each store is also asked what it cannot know: questions of the next conversation, and small talk.
    """
    stores = [list(talks)] if options.one_store else [[talk] for talk in talks]
    results, unanswered = list[Result](), list[Unanswered]()
    for number, group in enumerate(stores):
        path = folder / f"{number}-{time.monotonic_ns()}"
        path.mkdir()
        os.environ["WEFT_HOME"] = str(path)
        async with await weft.open(path / "weft.db", embedder=_embedder(options.embedder)) as store:
            names = await _fill(store, group)
            if store.meaning is not None:
                async for _ in store.meaning.catch_up():
                    pass
            newest = max(line.at for talk in group for line in talk.lines) + timedelta(days=1)
            async with _builds(store, newest, options.window) as build:
                for at, talk in enumerate(group):
                    for question in progress.track(talk.questions, description="asking"):
                        results.append(await _ask(store, build, question, names[at], newest))
                strange = [one.text for one in talks[(number + 1) % len(talks)].questions[::4]]
                for kind, texts in (("another's questions", strange), ("small talk", SMALL_TALK)):
                    if kind == "small talk" or len(stores) > 1:
                        unanswered += [Unanswered(kind, await _shown_tokens(build, text)) for text in texts]
    return results, unanswered


@asynccontextmanager
async def _builds(store: weft.Store, now: datetime, window: int) -> AsyncIterator[Build]:
    """Build outside of any session, or with a `window` inside an epoch of a session that has begun."""
    if not window:
        builder = weft.ContextBuilder(recipe="weft").with_store(store).for_agent("weft")
        yield builder.for_sender("app", "owner").at(now).build
        return
    info = weft.ModelInfo(id="scripted", provider="scripted", max_tokens=window)
    assistant = await weft.connect(provider=weft.ScriptedProvider(_GREETINGS, info=info), store=store)
    for greeting in _GREETINGS:
        await assistant.ask(greeting, session="benchmark")
    yield partial(assistant.context, session="benchmark")
    await assistant.close()


async def _shown_tokens(build: Build, text: str) -> int:
    context = await build(text)
    return (
        sum(item.tokens for item in context.receipt.kept if item.source == "recall") if context.receipt else 0
    )


def _embedder(name: str | None) -> Embedder | None:
    return make_embedder(replace(Config(), search=SearchSettings(embedder=name)))


async def _fill(store: weft.Store, talks: Sequence[Talk]) -> list[dict[str, str]]:
    """Store the lines of all conversations. Returns the id of the line of each message, by conversation."""
    names = []
    for number, talk in enumerate(talks):
        sessions, ids = dict[str, str](), dict[str, str]()
        by_session: dict[str, list[Said]] = defaultdict(list)
        for line in talk.lines:
            by_session[line.session].append(line)
        for session, lines in by_session.items():
            made = await store.sessions.new("app", f"{number}/{session}", "owner", agent_id="weft")
            sessions[session] = made.id
            said = [
                weft.Message(role="user", content=one.text, name=one.speaker, timestamp=one.at)
                for one in lines
            ]
            await store.messages.append(made.id, *said)
            ids |= {f"{made.id}/{place}": one.id for place, one in enumerate(lines, 1)}
        names.append(ids)
    return names


async def _ask(
    store: weft.Store, build: Build, question: Asked, names: dict[str, str], now: datetime
) -> Result:
    started = time.perf_counter()
    hits = await store.recall.recall(question.text, sender=_SENDER, session_id="", limit=_RANKED, now=now)
    took = (time.perf_counter() - started) * 1000
    found, groups = [], set[tuple[str, int]]()
    for hit in hits:
        price = count(f"- {hit.speaker}: {hit.text}\n")
        if (hit.session_id, hit.episode) not in groups:
            groups.add((hit.session_id, hit.episode))
            price += count(f"{hit.timestamp:%Y-%m-%d %H:%M}\n")
        found.append((names.get(f"{hit.session_id}/{hit.place}", ""), price))
    result = Result(question, found, milliseconds=took)
    by_id = {hit.id: name for hit, (name, _) in zip(hits, found, strict=True)}
    context = await build(question.text)
    for item in context.receipt.kept if context.receipt else ():
        if item.source == "recall":
            result.shown_tokens += item.tokens
            result.shown.add(by_id.get(item.id, ""))
    return result


# --- floors


def floors(talks: Sequence[Talk]) -> dict[str, list[Result]]:
    """Rank without Weft: the last lines, lines with a word of the question, and plain full-text search."""
    ranked: dict[str, list[Result]] = {"last turns": [], "grep": [], "plain FTS5": []}
    for talk in talks:
        prices = [count(f"[{line.at:%Y-%m-%d}] {line.speaker}: {line.text}") for line in talk.lines]
        db = apsw.Connection(":memory:")
        db.execute("create virtual table f using fts5(text, tokenize = 'porter unicode61')")
        db.executemany("insert into f(text) values(?)", [(line.text,) for line in talk.lines])
        bags = [set(words(line.text)) for line in talk.lines]
        for question in talk.questions:
            asked = [word for word in words(question.text) if word not in STOP_WORDS]
            match = " OR ".join(f'"{word}"' for word in asked) or '""'
            query = "select rowid - 1 from f where f match ? order by rank limit 200"
            orders = {
                "last turns": range(len(bags) - 1, -1, -1),
                "grep": sorted(range(len(bags)), key=lambda at: -len(bags[at] & set(asked))),
                "plain FTS5": [row[0] for row in db.execute(query, (match,))],
            }
            for name, order in orders.items():
                ranked[name].append(Result(question, [(talk.lines[at].id, prices[at]) for at in order]))
    return ranked


# --- showing


def figures(results: Sequence[Result]) -> dict[str, dict[str, float]]:
    """Return the mean of every measure in percent, for each category, for 1 to 4 together, and for 5."""
    groups: dict[str, list[Result]] = defaultdict(list)
    for result in results:
        groups[result.question.category].append(result)
        if result.question.category != "5":
            groups["1-4"].append(result)
    return {name: _means(group) for name, group in sorted(groups.items())}


def _means(results: Sequence[Result]) -> dict[str, float]:
    measured = [result.measures() for result in results]
    means = {name: round(100 * sum(one[name] for one in measured) / len(measured), 1) for name in MEASURES}
    times = [result.milliseconds for result in results]
    return {
        **means,
        "shown tokens": round(sum(result.shown_tokens for result in results) / len(results)),
        "ms p50": round(p50(times), 2),
        "ms p95": round(p95(times), 2) if len(times) > 1 else 0.0,
        "n": len(results),
    }


def _show(title: str, rows: dict[str, dict[str, float]]) -> None:
    shown = table("what", "n", *MEASURES, "shown tokens", "ms p50", "ms p95")
    for name, row in rows.items():
        shown.add_row(
            f"{title}, {name}",
            str(row["n"]),
            *(f"{row[key]:.1f}" for key in (*MEASURES, "shown tokens", "ms p50", "ms p95")),
        )
    out.print(shown)


def _silence(unanswered: Sequence[Unanswered]) -> dict[str, dict[str, float]]:
    """Show how often nothing is recalled where nothing can be relevant."""
    rows = {}
    shown = table("what", "n", "nothing recalled", "mean tokens")
    for kind in dict.fromkeys(one.kind for one in unanswered):
        tokens = [one.tokens for one in unanswered if one.kind == kind]
        share, mean = 100 * tokens.count(0) / len(tokens), sum(tokens) / len(tokens)
        rows[kind] = {"n": len(tokens), "nothing": round(share, 1), "tokens": round(mean)}
        shown.add_row(kind, str(len(tokens)), f"{share:.1f} %", f"{mean:.0f}")
    out.print(shown)
    return rows


def main() -> None:
    parser = arguments("Measure how much of the evidence recall finds.")
    parser.add_argument("path", type=Path, help="conversations with questions, as JSON")
    parser.add_argument(
        "--without", metavar="FEATURE", choices=sorted(weights.WEIGHTS), help="leave one feature out"
    )
    parser.add_argument("--split", action="store_true", help="cut turns into sentences, as in real chats")
    parser.add_argument("--one-store", action="store_true", help="all conversations in one person's store")
    parser.add_argument("--embedder", metavar="NAME", help="wordllama or minilm; none by default")
    parser.add_argument(
        "--window",
        type=at_least(0),
        default=0,
        metavar="TOKENS",
        help="what turns show in a running conversation with a model of this window",
    )
    options = parser.parse_args()
    talks = read(options.path)
    if options.split:
        talks = [split(talk) for talk in talks]
    if options.without:
        weights.WEIGHTS[options.without] = 0.0
    with workplace() as (folder, progress):
        results, unanswered = asyncio.run(search(folder, talks, options, progress))
    report = figures(results)
    _show("weft", report)
    silence = _silence(unanswered)
    beside = {name: figures(ranked) for name, ranked in floors(talks).items()}
    for name, rows in beside.items():
        _show(name, {key: rows[key] for key in ("1-4", "5") if key in rows})
    if options.json:
        options.json.write_text(
            json.dumps({**report, "floors": beside, "unanswered": silence}, indent=1) + "\n", "utf-8"
        )


if __name__ == "__main__":
    main()
