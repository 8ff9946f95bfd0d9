"""Times trimming a history with tool calls to a budget of tokens, and checks what comes out of it.

Each library gets the same messages, the same counter of tokens and the same budget, and all take turns. The
first call sees a history that nobody has counted; the next turns add one exchange each.
"""

from __future__ import annotations

import asyncio
import random
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.progress import Progress

from timing import arguments, at_least, milliseconds, out, p50, table, versions, workplace, write_json
from trimmers import TRIMMERS, Trimmer
from weft.tokens import COUNTERS
from weft.types.message import Message, ToolCall

BUDGET = 8_000
SIZES = (1_000, 10_000)
_PACKAGES = ("weft", "langchain-core", "litellm", "llama-index-core")
_WARM_UP = 300
"""Messages that each library trims before the clock starts: modules and vocabularies are loaded."""
_PATIENCE_MS = 90_000
_WORDS = (
    "the plan for tuesday is to move both meetings and send notes about tide tables before lunch while the "
    "boat waits near pier four with a new camera housing and spare batteries for every dive this season"
).split()


@dataclass(frozen=True, slots=True, kw_only=True)
class Validity:
    """Whether a provider would take a trimmed history, and whether the budget holds.

    `whole`: no text was shortened.
    """

    together: bool
    user_first: bool
    within: bool
    whole: bool

    @property
    def holds(self) -> bool:
        return self.together and self.user_first and self.within


@dataclass(frozen=True, slots=True, kw_only=True)
class TrimRow:
    """One library at one size: medians, and the slowest call of all.

    `load_ms` is storing the history; a list is not stored. The counts are of all checked
    results: those that were valid, and those in which one thing held.
    """

    name: str
    source: str
    messages: int
    first_ms: float | None = None
    next_ms: float | None = None
    worst_ms: float | None = None
    load_ms: float | None = None
    checked: int = 0
    valid: int = 0
    together: int = 0
    user_first: int = 0
    within: int = 0
    whole: int = 0
    kept_messages: float = 0.0
    kept_tokens: float = 0.0
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrimReport:
    """All that one run measured."""

    budget: int
    versions: dict[str, str]
    rows: tuple[TrimRow, ...]


@dataclass(slots=True)
class _Samples:
    first: list[float] = field(default_factory=list)
    next: list[float] = field(default_factory=list)
    load: list[float] = field(default_factory=list)
    checks: list[Validity] = field(default_factory=list)
    messages: list[int] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)

    def is_slow(self) -> bool:
        """Whether a library had its share of the time, so that it is measured fewer times than others."""
        return sum(self.first) + sum(self.next) > _PATIENCE_MS


class Talk:
    """A conversation with tool calls, the same one for the same seed.

    `salt` is a number of three digits in front of each text. It is one token, so that each library gets texts
    of the same length that no other library has counted before.
    """

    def __init__(self, seed: int, salt: int) -> None:
        self._chance, self._salt, self._calls = random.Random(seed), salt, 0

    def text(self, words: int) -> str:
        return f"{self._salt} {' '.join(self._chance.choices(_WORDS, k=words))}"

    def question(self) -> Message:
        return Message(role="user", content=self.text(20))

    def exchange(self, question: Message) -> Iterator[Message]:
        """Answer a question, with up to three tool calls in a message of their own."""
        yield question
        calls = [self._call() for _ in range(self._chance.choice((0, 0, 1, 1, 2, 3)))]
        if calls:
            yield Message(role="assistant", content="", tool_calls=tuple(calls), origin="agent")
        for call in calls:
            yield Message(role="tool", content=self.text(60), tool_call_id=call.id, tool_name=call.name)
        yield Message(role="assistant", content=self.text(95), origin="agent")

    def history(self, size: int) -> list[Message]:
        """Talk until there are `size` messages or a few more: the last exchange is whole."""
        messages: list[Message] = []
        while len(messages) < size:
            messages += self.exchange(self.question())
        return messages

    def _call(self) -> ToolCall:
        self._calls += 1
        return ToolCall(id=f"call_{self._calls}", name="search", arguments={"query": self.text(6)})


def check(shown: Sequence[Message], said: frozenset[str], budget: int) -> Validity:
    """Check a trimmed history: calls with their results, a user's message first, within the budget."""
    open_calls: set[str] = set()
    together = True
    for message in shown:
        if message.role == "tool":
            together &= message.tool_call_id in open_calls
            open_calls.discard(message.tool_call_id or "")
        else:
            together &= not open_calls
            open_calls = {call.id for call in message.tool_calls}
    return Validity(
        together=together and not open_calls,
        user_first=bool(shown) and shown[0].role == "user",
        within=tokens(shown) <= budget,
        whole=all(message.content in said for message in shown),
    )


def tokens(messages: Sequence[Message]) -> int:
    return sum(COUNTERS["exact"].message(message) for message in messages)


async def measure_size(
    folder: Path, size: int, rounds: int, turns: int, progress: Progress
) -> tuple[TrimRow, ...]:
    """Measure all libraries that are installed, in turns."""
    samples = {kind: _Samples() for kind in TRIMMERS}
    present = [kind for kind in TRIMMERS if kind.is_installed() and size <= (kind.largest or size)]
    for place, kind in enumerate(present):
        path = folder / f"warm-up-{place}"
        path.mkdir(exist_ok=True)
        await _conversation(kind(BUDGET, path), Talk(seed=0, salt=100 + place), _Samples(), _WARM_UP, 1)
        await asyncio.to_thread(shutil.rmtree, path)
    for at in progress.track(range(rounds), description=f"trimming {size:,} messages"):
        for place, kind in enumerate(present[at % len(present) :] + present[: at % len(present)]):
            if samples[kind].is_slow():
                continue
            talk = Talk(seed=at, salt=200 + at * len(present) + place)
            path = folder / f"{size}-{at}-{place}"
            path.mkdir()
            await _conversation(kind(BUDGET, path), talk, samples[kind], size, turns)
            await asyncio.to_thread(shutil.rmtree, path)
    return tuple(_row(kind, size, samples[kind]) for kind in TRIMMERS)


async def _conversation(trimmer: Trimmer, talk: Talk, samples: _Samples, size: int, turns: int) -> None:
    """Trim once, and once more in each of the next turns. What comes out is checked, untimed."""
    history, question = talk.history(size), talk.question()
    said = {message.content for message in (*history, question)}
    load_ms = await milliseconds(trimmer.load(history, question))
    if trimmer.source == "database":
        samples.load.append(load_ms)
    for turn in range(turns + 1):
        if turn > 1 and samples.is_slow():
            break
        times = samples.next if turn else samples.first
        if turn:
            exchange = list(talk.exchange(question))
            question = talk.question()
            said |= {message.content for message in (*exchange, question)}
            trimmer.add(exchange, question)
        result: list[object] = []
        times.append(await milliseconds(_into(result, trimmer, is_first=not turn)))
        shown = trimmer.shown(result[0])
        samples.checks.append(check(shown, frozenset(said), BUDGET))
        samples.messages.append(len(shown))
        samples.tokens.append(tokens(shown))
    await trimmer.close()


async def _into(result: list[object], trimmer: Trimmer, *, is_first: bool) -> None:
    result.append(await (trimmer.first() if is_first else trimmer.next()))


def _row(kind: type[Trimmer], size: int, samples: _Samples) -> TrimRow:
    if not samples.checks:
        note = f"left out: its time grows with the square of the messages, so {size:,} take minutes"
        note = note if kind.is_installed() else "not installed"
        return TrimRow(name=kind.name, source=kind.source, messages=size, note=note)
    checks = samples.checks
    return TrimRow(
        name=kind.name,
        source=kind.source,
        messages=size,
        first_ms=p50(samples.first),
        next_ms=p50(samples.next),
        worst_ms=max(*samples.first, *samples.next),
        load_ms=p50(samples.load) if samples.load else None,
        checked=len(checks),
        valid=sum(one.holds for one in checks),
        together=sum(one.together for one in checks),
        user_first=sum(one.user_first for one in checks),
        within=sum(one.within for one in checks),
        whole=sum(one.whole for one in checks),
        kept_messages=sum(samples.messages) / len(checks),
        kept_tokens=sum(samples.tokens) / len(checks),
    )


def _show(report: TrimReport) -> None:
    titles = (
        "messages",
        "stored in",
        "first",
        "next turn",
        "slowest",
        "valid",
        "calls together",
        "user first",
    )
    shown = table("what", *titles, "within", "texts whole", "kept tokens")
    for row in report.rows:
        if row.first_ms is None or row.next_ms is None:
            shown.add_row(row.name, f"{row.messages:,}", row.note)
            continue
        counts = (row.valid, row.together, row.user_first, row.within, row.whole)
        load = "" if row.load_ms is None else f"{row.load_ms:.0f} ms"
        times = (load, f"{row.first_ms:.2f} ms", f"{row.next_ms:.2f} ms", f"{row.worst_ms:.0f} ms")
        shares = (f"{number / row.checked:.0%}" for number in counts)
        shown.add_row(row.name, f"{row.messages:,}", *times, *shares, f"{row.kept_tokens:,.0f}")
    out.print(shown)


def main() -> None:
    parser = arguments(f"Time trimming a history with tool calls to {BUDGET:,} tokens, and check it.")
    parser.add_argument("--rounds", type=at_least(1), default=5, help="conversations of each library")
    parser.add_argument("--turns", type=at_least(1), default=8, help="turns of each conversation")
    sizes = "messages of a history"
    parser.add_argument("--messages", type=at_least(10), nargs="+", default=SIZES, metavar="N", help=sizes)
    options = parser.parse_args()
    rows: list[TrimRow] = []
    with workplace() as (folder, progress):
        for size in options.messages:
            work = measure_size(folder, size, options.rounds, options.turns, progress)
            rows += asyncio.run(work)
    report = TrimReport(budget=BUDGET, versions=versions(*_PACKAGES), rows=tuple(rows))
    write_json(options.json, report)
    _show(report)


if __name__ == "__main__":
    main()
