"""Times a build with many skills and long histories, beside counting the same history anew.

The history is a list, or the log of a session in a database with a running epoch, as in a real conversation.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from rich.progress import Progress

import weft
from timing import arguments, at_least, milliseconds, out, p50, p95, table, workplace, write_json
from weft.tokens import count_anew
from weft.turn.build import ContextBuilder
from weft.types.message import Message

SIZES, LARGEST, LARGE = (1_000, 10_000), 100_000, 1_000_000
COUNT_GOAL, GROWTH_GOAL, STORED_GROWTH_GOAL = 1 / 20, 1.2, 1.5
_BATCH = 1_000
_QUESTION = "When does the dive boat leave, and what should I pack?"
_THANKS = "Thanks, that is all!"
"""A message that recall has nothing to look for."""
_WORDS = (
    "the plan for tuesday is to move both meetings and send notes about tide tables before lunch while the "
    "boat waits near pier four with a new camera housing and spare batteries for every dive this season"
).split()


@dataclass(frozen=True, slots=True)
class Row:
    """One size: the median and the slow end of a build, the first build, and a count of all it holds."""

    messages: int
    p50_ms: float
    p95_ms: float
    first_ms: float
    count_ms: float


@dataclass(frozen=True, slots=True)
class StoredRow:
    """One size of a log in a database: the median and the slow end of a build inside an epoch.

    `thanks_p50_ms` is the median for a message that recall has nothing to look for.
    """

    messages: int
    p50_ms: float
    p95_ms: float
    thanks_p50_ms: float


@dataclass(frozen=True, slots=True)
class BuildReport:
    """All sizes, and the ratios that have a goal."""

    rows: tuple[Row, ...]
    stored: tuple[StoredRow, ...]
    of_count_10k: float
    growth: float
    stored_of_count_10k: float
    stored_growth: float
    thanks_of_count_10k: float
    thanks_growth: float


async def measure_build(
    folder: Path, skills: int, rounds: int, progress: Progress, *, sizes: tuple[int, ...]
) -> BuildReport:
    """Build in turn for every size, so that a slow minute slows all of them.

    The largest one is only in a database.
    """
    listed = sizes[:3]
    histories = {size: list(sample_history(size)) for size in listed}
    builder = ContextBuilder(recipe="weft").with_workspace(sample_workspace(folder, skills=skills))
    builders = {size: builder.with_messages(history) for size, history in histories.items()}
    await builder.build("warm up")
    first = {size: await milliseconds(builders[size].build(_QUESTION)) for size in listed}
    times: dict[int, list[float]] = {size: [] for size in listed}
    for _ in progress.track(range(rounds), description="building"):
        for size in listed:
            times[size].append(await milliseconds(builders[size].build(_QUESTION)))
    rows = {
        size: Row(
            messages=size,
            p50_ms=p50(times[size]),
            p95_ms=p95(times[size]),
            first_ms=first[size],
            count_ms=_count_milliseconds(histories[size]),
        )
        for size in listed
    }
    stored = await _stored(folder / "stored", sizes, rounds, progress)
    return BuildReport(
        rows=tuple(rows.values()),
        stored=tuple(stored.values()),
        of_count_10k=rows[10_000].p50_ms / rows[10_000].count_ms,
        growth=rows[listed[-1]].p50_ms / rows[1_000].p50_ms,
        stored_of_count_10k=stored[10_000].p50_ms / rows[10_000].count_ms,
        stored_growth=stored[sizes[-1]].p50_ms / stored[1_000].p50_ms,
        thanks_of_count_10k=stored[10_000].thanks_p50_ms / rows[10_000].count_ms,
        thanks_growth=stored[sizes[-1]].thanks_p50_ms / stored[1_000].thanks_p50_ms,
    )


async def _stored(
    folder: Path, sizes: tuple[int, ...], rounds: int, progress: Progress
) -> dict[int, StoredRow]:
    """Talk in a session of each size until its epoch runs, then build in it, in turn for every size."""
    apps = {size: await _talked(folder / str(size), size, progress) for size in sizes}
    asked: dict[int, list[float]] = {size: [] for size in sizes}
    thanked: dict[int, list[float]] = {size: [] for size in sizes}
    for _ in progress.track(range(rounds), description="building in epochs"):
        for size, app in apps.items():
            asked[size].append(await milliseconds(app.context(_QUESTION, session="talk")))
            thanked[size].append(await milliseconds(app.context(_THANKS, session="talk")))
    for app in apps.values():
        await app.close()
    return {
        size: StoredRow(messages=size, p50_ms=p50(took), p95_ms=p95(took), thanks_p50_ms=p50(thanked[size]))
        for size, took in asked.items()
    }


async def _talked(folder: Path, size: int, progress: Progress) -> weft.Assistant:
    """Open an assistant of its own whose newest session has `size` messages, and talk there three times."""
    os.environ["WEFT_HOME"] = str(folder)
    provider = weft.ScriptedProvider(["At nine, from pier four."] * 100, remember=False)
    app = await weft.connect(provider=provider, database=folder / "weft.db")
    store = await app.store.get()
    session = await store.sessions.find_or_create("app", "talk", "owner", agent_id="weft")
    history = sample_history(size)
    for _ in progress.track(range(0, size, _BATCH), description=f"writing {size:,} messages"):
        await store.messages.append(session.id, *islice(history, _BATCH))
    for question in ("Good morning!", "What is the plan?", "And after that?"):
        await app.ask(question, session="talk")
        await app.folds.settle()
    return app


def _count_milliseconds(history: list[Message]) -> float:
    """Return the median time of three counts of every message, none of them cached."""
    times = []
    for _ in range(3):
        started = time.perf_counter()
        for message in history:
            count_anew(message.content)
        times.append((time.perf_counter() - started) * 1000)
    return p50(times)


def sample_history(size: int) -> Iterator[Message]:
    """Questions of about 100 characters and answers of about 500, no two alike."""
    chance = random.Random(size)
    for at in range(size):
        words = 20 if at % 2 == 0 else 95
        text = " ".join(chance.choices(_WORDS, k=words))
        yield Message(role="user" if at % 2 == 0 else "assistant", content=f"{text} {at}")


def sample_workspace(root: Path, *, skills: int, entries: int = 200) -> Path:
    """Make a workspace whose files were written a while ago, as files usually were."""
    files = {
        "SOUL.md": "You are Weft, calm and to the point.",
        "AGENTS.md": "Answer first, explain after.",
        "USER.md": "The user dives.",
        "TOOLS.md": "Say what you are about to do.",
        "memory/MEMORY.md": "\n".join(f"- Fact {n} about dives and tides." for n in range(entries)),
    }
    for n in range(skills):
        front = f"---\nname: skill-{n}\ndescription: Does thing {n} when asked for thing {n}.\n---\n"
        files[f"skills/skill-{n}/SKILL.md"] = front + "Steps. " * 200
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        os.utime(path, (time.time() - 3600, time.time() - 3600))
    return root


def _show(report: BuildReport) -> None:
    rows = table("messages", "build p50", "p95", "first build", "counting anew")
    for row in report.rows:
        figures = (row.p50_ms, row.p95_ms, row.first_ms, row.count_ms)
        rows.add_row(f"{row.messages:,}", *(f"{figure:.2f} ms" for figure in figures))
    out.print(rows)
    rows = table("messages in the database", "build in an epoch p50", "p95", "nothing to recall p50")
    for stored in report.stored:
        stored_figures = (stored.p50_ms, stored.p95_ms, stored.thanks_p50_ms)
        rows.add_row(f"{stored.messages:,}", *(f"{figure:.2f} ms" for figure in stored_figures))
    out.print()
    out.print(rows)
    out.print(f"build at 10k / counting it anew: {report.of_count_10k:.4f} (goal at most {COUNT_GOAL:.4f})")
    last = f"{report.rows[-1].messages:,}"
    out.print(f"build at {last} / build at 1k: {report.growth:.2f} (goal at most {GROWTH_GOAL})")
    share = f"{report.stored_of_count_10k:.4f} (goal at most {COUNT_GOAL:.4f})"
    out.print(f"in an epoch, from the database: build at 10k / counting it anew: {share}")
    largest = f"{report.stored[-1].messages:,}"
    growth = f"{report.stored_growth:.2f} (goal at most {STORED_GROWTH_GOAL})"
    out.print(f"in an epoch, from the database: build at {largest} / build at 1k: {growth}")
    share = f"{report.thanks_of_count_10k:.4f} (goal at most {COUNT_GOAL:.4f})"
    out.print(f"the same, nothing to recall: build at 10k / counting it anew: {share}")
    growth = f"{report.thanks_growth:.2f} (goal at most {STORED_GROWTH_GOAL})"
    out.print(f"the same, nothing to recall: build at {largest} / build at 1k: {growth}")


def main() -> None:
    parser = arguments("Time a build with many skills and histories of 1k, 10k and 100k messages.")
    parser.add_argument("--rounds", type=at_least(5), default=40, help="builds of each size")
    parser.add_argument("--skills", type=at_least(0), default=100, help="skills in the workspace")
    parser.add_argument("--largest", type=at_least(10_000), default=LARGEST, help="messages of the last size")
    parser.add_argument("--large", action="store_true", help="a database with a million messages, too")
    options = parser.parse_args()
    with workplace() as (folder, progress):
        sizes = (*SIZES, options.largest, *((LARGE,) if options.large else ()))
        work = measure_build(folder, options.skills, options.rounds, progress, sizes=sizes)
        report = asyncio.run(work)
    write_json(options.json, report)
    _show(report)


if __name__ == "__main__":
    main()
