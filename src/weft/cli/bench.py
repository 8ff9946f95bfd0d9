"""`weft bench`: how fast this machine is, as ratios within one run.

Machines are noisy, so no number stands alone: every figure has one beside it that was measured in the
same minutes, and builds of different sizes take turns.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import track
from rich.table import Table

from weft.cli.options import AsJson, err, out, run
from weft.tokens import count_anew
from weft.turn.build import ContextBuilder
from weft.types.message import Message

app = typer.Typer(no_args_is_help=True, help="Measure this machine's speed, as ratios within one run.")
SIZES = (1_000, 10_000, 100_000)
COUNT_GOAL, GROWTH_GOAL = 1 / 20, 1.2
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


@app.callback()
def bench() -> None:
    """Measure this machine's speed, as ratios within one run."""


@app.command()
def build(
    rounds: Annotated[int, typer.Option("--rounds", min=5, help="How many builds of each size.")] = 40,
    skills: Annotated[int, typer.Option("--skills", min=0, help="How many skills the workspace has.")] = 100,
    as_json: AsJson = False,
) -> None:
    """Time a build with many skills and histories of 1k, 10k and 100k messages."""
    with tempfile.TemporaryDirectory(prefix="weft-bench-") as folder:
        rows = run(_measure(_workspace(Path(folder), skills), rounds))
    by_size = {row.messages: row for row in rows}
    of_count = by_size[10_000].p50_ms / by_size[10_000].count_ms
    growth = by_size[100_000].p50_ms / by_size[1_000].p50_ms
    if as_json:
        report = {"rows": [asdict(row) for row in rows], "of_count_10k": of_count, "growth_100k": growth}
        typer.echo(json.dumps(report))
        return
    table = Table(box=None, pad_edge=False)
    for title in ("messages", "build p50", "p95", "first build", "counting anew"):
        table.add_column(title, justify="right")
    for row in rows:
        figures = (row.p50_ms, row.p95_ms, row.first_ms, row.count_ms)
        table.add_row(f"{row.messages:,}", *(f"{figure:.2f} ms" for figure in figures))
    out.print(table)
    out.print(f"build at 10k / counting it anew: {of_count:.4f} (goal at most {COUNT_GOAL:.4f})")
    out.print(f"build at 100k / build at 1k: {growth:.2f} (goal at most {GROWTH_GOAL})")


async def _measure(workspace: Path, rounds: int) -> list[Row]:
    """Build in turn for every size, so that a slow minute slows all of them."""
    histories = {size: list(_history(size)) for size in SIZES}
    builder = ContextBuilder(recipe="weft").with_workspace(workspace)
    builders = {size: builder.with_messages(history) for size, history in histories.items()}
    await builder.build("warm up")
    first = {size: await _milliseconds(builders[size]) for size in SIZES}
    times: dict[int, list[float]] = {size: [] for size in SIZES}
    for _ in track(range(rounds), description="building", console=err, transient=True):
        for size in SIZES:
            times[size].append(await _milliseconds(builders[size]))
    return [
        Row(
            messages=size,
            p50_ms=statistics.median(times[size]),
            p95_ms=statistics.quantiles(times[size], n=20)[-1],
            first_ms=first[size],
            count_ms=_count_milliseconds(histories[size]),
        )
        for size in SIZES
    ]


async def _milliseconds(builder: ContextBuilder) -> float:
    started = time.perf_counter()
    await builder.build("When does the dive boat leave, and what should I pack?")
    return (time.perf_counter() - started) * 1000


def _count_milliseconds(history: list[Message]) -> float:
    """The median of three counts of every message, none of them remembered."""
    times = []
    for _ in range(3):
        started = time.perf_counter()
        for message in history:
            count_anew(message.content)
        times.append((time.perf_counter() - started) * 1000)
    return statistics.median(times)


def _history(size: int) -> Iterator[Message]:
    """Questions of about 100 characters and answers of about 500, no two alike."""
    chance = random.Random(size)  # noqa: S311 - test data
    for at in range(size):
        words = 20 if at % 2 == 0 else 95
        text = " ".join(chance.choices(_WORDS, k=words))
        yield Message(role="user" if at % 2 == 0 else "assistant", content=f"{text} {at}")


def _workspace(root: Path, skills: int) -> Path:
    """A workspace whose files were written a while ago, as files usually were."""
    files = {
        "SOUL.md": "You are Weft, calm and to the point.",
        "AGENTS.md": "Answer first, explain after.",
        "USER.md": "The user dives.",
        "TOOLS.md": "Say what you are about to do.",
        "memory/MEMORY.md": "\n".join(f"- Fact {n} about dives and tides." for n in range(200)),
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
