"""How much of each request a provider has seen before, and what a conversation costs, in four ways.

A conversation is talked through turn by turn with memory, recall, tools and folds on. The same messages are
sent with epochs (the default recipe); with the whole prompt written anew each turn, all of the history that
fits and the clock on top; with a window that slides behind a short prompt; and with epochs that are never
folded.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from rich.progress import Progress

import weft
from timing import arguments, at_least, out, table, workplace, write_json
from weft.context.diff import causes
from weft.tokens import count
from weft.turn.fold import FOLD_TASK
from weft.types.recipe import HistoryRule, Layer, Recipe
from weft.types.reply import Event
from weft.wire.items import split

SHARE_GOAL, ANTHROPIC_GOAL, AUTOMATIC_GOAL, TOKENS_GOAL = 0.95, 0.20, 0.25, 1.1
_START = datetime(2026, 11, 2, 9, 0, tzinfo=UTC)
_SHORTEST, _STEP = 1_024, 128


@dataclass(slots=True)
class Way:
    """One way to send a conversation: its requests in items with their tokens, and what broke the prefix."""

    name: str
    requests: list[list[tuple[str, int]]] = field(default_factory=list)
    is_turn: list[bool] = field(default_factory=list)
    breaks: Counter[str] = field(default_factory=Counter)
    attached: Counter[str] = field(default_factory=Counter)
    folds: int = 0
    disk_bytes: int = 0

    def add(self, context: weft.Context, *, is_turn: bool = True) -> None:
        payload = weft.wire.to_wire("anthropic", context, model="claude-sonnet-5")
        self.requests.append([(item, count(item)) for item in split(payload).items])
        self.is_turn.append(is_turn)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The figures of one way. Costs are relative to those of the rebuild."""

    name: str
    share: float
    tokens: int
    of_rebuild: float
    anthropic: float
    automatic: float
    automatic_half: float
    breakpoints: float
    folds: int
    breaks: dict[str, int]
    attached: dict[str, int]
    disk_bytes_per_turn: float
    body_bytes_per_turn: float


def shared(before: Sequence[tuple[str, int]], after: Sequence[tuple[str, int]]) -> int:
    """Return how many of the first items two requests have in common."""
    number = 0
    while number < min(len(before), len(after)) and before[number][0] == after[number][0]:
        number += 1
    return number


def figures(way: Way) -> dict[str, float]:
    """Price all requests of a way by the rules of vendors. A cache that does not pay is not used."""
    shares, tokens, body_bytes = list[float](), 0, 0
    costs: dict[str, float] = defaultdict(float)
    before: list[tuple[str, int]] = []
    for request, is_turn in zip(way.requests, way.is_turn, strict=True):
        same = shared(before, request)
        size = sum(len(item.encode()) for item, _ in request)
        total = sum(price for _, price in request)
        seen = sum(price for _, price in request[:same])
        if before and is_turn:
            shares.append(sum(len(item.encode()) for item, _ in request[:same]) / size)
        cached = seen if seen >= _SHORTEST else 0
        stepped = cached // _STEP * _STEP
        tokens += total
        body_bytes += size
        costs["plain"] += total
        costs["anthropic"] += cached * 0.1 + (total - cached) * 1.25
        costs["automatic"] += stepped * 0.1 + total - stepped
        costs["automatic_half"] += stepped * 0.5 + total - stepped
        costs["breakpoints"] += cached * 0.1 + (total - cached) * 1.25
        before = request
    for name in ("anthropic", "breakpoints"):
        costs[name] = min(costs[name], costs["plain"])
    return {"share": sum(shares) / max(len(shares), 1), "tokens": tokens, "bytes": body_bytes, **costs}


class Talker(weft.ScriptedProvider):
    """Answers as the other side of the conversation did, calls a tool now and then, and writes summaries."""

    def __init__(self, answers: Sequence[str], ways: Sequence[Way], window: int) -> None:
        info = weft.ModelInfo(
            id="claude-sonnet-5",
            provider="anthropic",
            max_tokens=window,
            cache_seconds=300,
            cache_read=0.1,
            cache_write=1.25,
        )
        super().__init__(info=info, remember=False)
        self._answers, self._ways, self._turn = answers, ways, 0
        self.last: weft.Context | None = None

    async def stream(self, context: weft.Context) -> AsyncGenerator[Event]:
        is_fold = FOLD_TASK in context.current_message or FOLD_TASK in context.system_prompt
        for way in self._ways:
            way.add(context, is_turn=not is_fold and not context.steps)
            way.folds += is_fold
        if is_fold:
            yield weft.Done(weft.Reply(text=_summary(context)))
            return
        if not context.steps:
            self.last = context
        if self._turn % 9 == 8 and not context.steps:
            query = {"query": context.current_message[:60]}
            call = weft.ToolCall(id=f"c{self._turn}", name="conversation_search", arguments=query)
            yield weft.Done(weft.Reply(text="", tool_calls=(call,)))
            return
        answer = self._answers[self._turn % len(self._answers)]
        self._turn += 1
        yield weft.Done(weft.Reply(text=answer))


def _summary(context: weft.Context) -> str:
    """Write a summary as a model might: the beginnings of what was said."""
    lines = [" ".join(message.content.split()[-14:]) for message in context.history if message.role == "user"]
    return "They talked about: " + "; ".join(lines[:40])


def exchanges(path: Path | None, turns: int) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Return the exchanges to talk through, and others that were said in earlier conversations."""
    if path is None:
        made = list(_made(turns * 2))
        return made[:turns], made[turns:]
    conversations = json.loads(path.read_text("utf-8"))
    longest = max(range(len(conversations)), key=lambda at: len(_lines(conversations[at])))
    talk = _lines(conversations[longest])
    earlier = [pair for at, one in enumerate(conversations) if at != longest for pair in _lines(one)]
    return [talk[at % len(talk)] for at in range(turns)], earlier[: 2 * turns]


def _lines(conversation: dict[str, Any]) -> list[tuple[str, str]]:
    sessions = conversation["conversation"]
    number, said = 1, list[str]()
    while f"session_{number}" in sessions:
        said += [line["text"] for line in sessions[f"session_{number}"]]
        number += 1
    return list(zip(said[::2], said[1::2], strict=False))


def _made(number: int) -> Iterator[tuple[str, str]]:
    chance = random.Random(7)
    words = (
        "boat tide camera market garden letter train winter music bread river school friend kitchen".split()
    )
    for at in range(number):
        yield tuple(f"{at} {' '.join(chance.choices(words, k=25))}" for _ in range(2))  # type: ignore[misc]


async def talk(folder: Path, options: Any, progress: Progress) -> list[Way]:
    """Talk the conversation through with epochs, and build the other ways from the same state each turn."""
    said, earlier = exchanges(options.path, options.turns)
    epochs, rebuild, sliding = Way("epochs"), Way("rebuild"), Way("sliding window")
    talker = Talker([answer for _, answer in said], [epochs], options.window)
    app = await _app(folder / "epochs", talker, options)
    store = await app.store.get()
    old = await store.sessions.new("app", "earlier", "owner", agent_id="weft")
    for question, answer in earlier:
        await store.messages.append(
            old.id,
            weft.Message(role="user", content=question),
            weft.Message(role="assistant", content=answer, origin="agent"),
        )
    receipts: list[weft.Receipt] = []
    disk_before = await _disk_bytes(store, folder / "epochs")
    for at in progress.track(range(options.turns), description="talking"):
        now = _START + timedelta(minutes=2 * at)
        await _change(store, folder / "epochs", at)
        app.engine = replace(app.engine, builder=app.engine.builder.at(now))
        reply = await app.ask(said[at][0], session="talk")
        await app.folds.settle()
        if reply.receipt is not None:
            receipts.append(reply.receipt)
            _note_break(epochs, receipts)
            for item in reply.receipt.kept:
                if item.zone == "turn":
                    epochs.attached[item.layer] += item.tokens
        await _other_ways(app, talker.last, said[at][0], now, (rebuild, sliding))
    epochs.disk_bytes = await _disk_bytes(store, folder / "epochs") - disk_before
    await app.close()
    return [epochs, rebuild, sliding, await _never_folded(folder / "oracle", said, options, progress)]


async def _disk_bytes(store: weft.Store, folder: Path) -> int:
    """Return the size of a copy of the database: without free pages, and with what the WAL still has."""
    copy = folder / "copy.db"
    await store.backup(copy)
    try:
        return copy.stat().st_size
    finally:
        copy.unlink()


async def _app(folder: Path, talker: Talker, options: Any) -> weft.Assistant:
    os.environ["WEFT_HOME"] = str(folder)
    memory = folder / "workspace" / "memory"
    memory.mkdir(parents=True)
    for name in ("SOUL.md", "AGENTS.md", "USER.md", "TOOLS.md"):
        (folder / "workspace" / name).write_text(f"{name}: calm and to the point.\n" * 4, "utf-8")
    entries = "\n".join(f"- Note {n}: the {n}th thing to remember about boats and tides." for n in range(30))
    (memory / "MEMORY.md").write_text(entries, "utf-8")
    limits = weft.ModelContextLimits(
        max_tokens=options.window, memory_tokens=4_000, reserved_response_tokens=2_000
    )
    return await weft.connect(
        provider=talker, database=folder / "weft.db", context=weft.ContextConfig(default_limits=limits)
    )


async def _change(store: weft.Store, folder: Path, at: int) -> None:
    """Change memory as life does: a block every 7 turns, a fact every 5, the memory file once."""
    if at % 7 == 6:
        await store.memory.append_to_block("weft", "notes", f"In turn {at} this was noted.\n")
    if at % 5 == 4:
        await store.facts.set("app:owner", f"fact_{at % 35}", f"value of turn {at}")
    if at == 100:
        path = folder / "workspace" / "memory" / "MEMORY.md"
        path.write_text(path.read_text("utf-8") + "\n- A note of turn 100 about the harbor.", "utf-8")


def _note_break(way: Way, receipts: Sequence[weft.Receipt]) -> None:
    """Count why the prefix of a request was not that of the one before."""
    if len(receipts) > 1 and receipts[-1].epoch_why:
        first = next(causes(*receipts[-2:]), None)
        way.breaks[first.kind if first else "unknown"] += 1


async def _other_ways(
    app: weft.Assistant, last: weft.Context | None, message: str, now: datetime, ways: tuple[Way, Way]
) -> None:
    """Build the same message anew with the clock on top, and in a window that slides."""
    if last is None or last.step is None:
        return
    store = await app.store.get()
    [session, *_] = await store.sessions.list(limit=1)
    log = await store.messages.all(session.id)
    end = max(at for at, one in enumerate(log) if one.role == "user" and one.content == message)
    steps = log[end + 1 : -1]
    recipe = app.engine.builder.recipe
    for way, live in zip(ways, (_clock_on_top(recipe), _only_history(recipe)), strict=True):
        builder = _builder(app, store, session.id, live, now).with_messages(log[:end])
        context = replace(await builder.build(message), tools=last.tools)
        way.add(context)
        if steps:
            way.add(replace(context, steps=tuple(steps)), is_turn=False)


def _builder(
    app: weft.Assistant, store: weft.Store, session_id: str, recipe: Recipe, now: datetime
) -> weft.ContextBuilder:
    made = weft.ContextBuilder(recipe=recipe, config=app.engine.builder._request.config)
    made = made.with_workspace(app.engine.builder.files.workspace or ".").with_store(store)
    return made.for_agent("weft").for_sender("app", "owner").with_session(session_id).at(now)


def _clock_on_top(recipe: Recipe) -> Recipe:
    clock = [layer for layer in recipe.layers if layer.source == "bootstrap"]
    rest = [layer for layer in recipe.layers if layer.source != "bootstrap"]
    return _live(recipe, (*(replace(layer, tag="") for layer in clock), *rest))


def _only_history(recipe: Recipe) -> Recipe:
    kept = ("instructions", "blocks", "history", "message")
    return _live(recipe, tuple(layer for layer in recipe.layers if layer.source in kept))


def _live(recipe: Recipe, layers: tuple[Layer, ...]) -> Recipe:
    return replace(recipe, stability="live", history=HistoryRule(), layers=layers)


async def _never_folded(
    folder: Path, said: Sequence[tuple[str, str]], options: Any, progress: Progress
) -> Way:
    """Talk through the conversation with room for all of it."""
    oracle = Way("never folded")
    talker = Talker([answer for _, answer in said], [oracle], 1_000_000)
    talker.info = replace(talker.info, cache_read=1.0, cache_write=1.0)
    wide = replace_option(options, window=1_000_000)
    app = await _app(folder, talker, wide)
    store = await app.store.get()
    for at in progress.track(range(options.turns), description="never folded"):
        await _change(store, folder, at)
        app.engine = replace(app.engine, builder=app.engine.builder.at(_START + timedelta(minutes=2 * at)))
        await app.ask(said[at][0], session="talk")
    await app.close()
    return oracle


def replace_option(options: Any, **changes: Any) -> Any:
    copy = type(options)()
    copy.__dict__ |= {**vars(options), **changes}
    return copy


def rows_of(ways: Sequence[Way]) -> list[Row]:
    """Put the figures of all ways beside those of the rebuild."""
    by_name = {way.name: figures(way) for way in ways}
    whole = by_name["rebuild"]
    return [
        Row(
            name=way.name,
            share=by_name[way.name]["share"],
            tokens=int(by_name[way.name]["tokens"]),
            of_rebuild=by_name[way.name]["tokens"] / whole["tokens"],
            **{
                name: by_name[way.name][name] / whole[name]
                for name in ("anthropic", "automatic", "automatic_half", "breakpoints")
            },
            folds=way.folds,
            breaks=dict(way.breaks),
            attached=dict(way.attached),
            disk_bytes_per_turn=way.disk_bytes / max(sum(way.is_turn), 1),
            body_bytes_per_turn=by_name[way.name]["bytes"] / max(sum(way.is_turn), 1),
        )
        for way in ways
    ]


def _show(rows: Sequence[Row]) -> None:
    shown = table(
        "what", "share", "tokens sent", "of rebuild", "Anthropic", "auto .1", "auto .5", "breakpoints"
    )
    for row in rows:
        costs = (row.anthropic, row.automatic, row.automatic_half, row.breakpoints)
        shown.add_row(
            row.name,
            f"{row.share:.3f}",
            f"{row.tokens:,}",
            f"{row.of_rebuild:.2f}",
            *(f"{cost:.2f}" for cost in costs),
        )
    out.print(shown)
    first = rows[0]
    out.print(
        f"goals for epochs: share at least {SHARE_GOAL} ({first.share:.3f}), cost at most {ANTHROPIC_GOAL} "
        f"({first.anthropic:.2f}) and {AUTOMATIC_GOAL} ({first.automatic:.2f}) of the rebuild, tokens sent "
        f"at most {TOKENS_GOAL} times ({first.of_rebuild:.2f}); {first.folds} requests to fold are among them"
    )
    reasons = ", ".join(f"{number} x {name}" for name, number in first.breaks.items()) or "nothing"
    attached = ", ".join(f"{name} {number:,}" for name, number in first.attached.items())
    out.print(f"tokens that went with messages, all turns together: {attached}")
    kept = f"{first.disk_bytes_per_turn:,.0f} bytes a turn, for requests of {first.body_bytes_per_turn:,.0f}"
    out.print(f"on disk, with messages, index, receipts and requests: {kept}")
    out.print(f"what differed first where a new epoch began: {reasons}")


def main() -> None:
    parser = arguments("Measure how stable requests are and what they cost, with epochs and in other ways.")
    parser.add_argument("path", nargs="?", type=Path, help="conversations as JSON; without one some are made")
    parser.add_argument("--turns", type=at_least(10), default=200, help="turns of the conversation")
    parser.add_argument("--window", type=at_least(6_000), default=20_000, help="the model's window in tokens")
    options = parser.parse_args()
    with workplace() as (folder, progress):
        rows = rows_of(asyncio.run(talk(folder, options, progress)))
    write_json(options.json, rows)
    _show(rows)


if __name__ == "__main__":
    main()
