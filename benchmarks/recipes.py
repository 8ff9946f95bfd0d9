"""Times a typical build of all five recipes, with its size and memory, beside miniclaw's own numbers."""

from __future__ import annotations

import asyncio
import tracemalloc
from dataclasses import dataclass
from pathlib import Path

from rich.progress import Progress

from build import sample_history, sample_workspace
from timing import arguments, at_least, milliseconds, out, p50, p95, table, workplace, write_json
from weft.turn.build import ContextBuilder
from weft.types.receipt import Receipt
from weft.types.recipe import Recipe, packaged

TIME_GOAL_MS, MEMORY_GOAL_BYTES, SAVED_GOAL = 50.0, 1_000_000, 0.55
"""What miniclaw's document promises of a typical context, and the tokens that Omega's claims to save."""
_QUESTION = "When does the dive boat leave, and what should I pack?"


@dataclass(frozen=True, slots=True)
class Row:
    """One recipe: the time of a build, the size and memory of its context, and the tokens that it spared."""

    recipe: str
    p50_ms: float
    p95_ms: float
    context_bytes: int
    memory_bytes: int
    tokens: int
    spared_tokens: int
    saved: float


async def measure_recipes(
    folder: Path, messages: int, entries: int, rounds: int, progress: Progress
) -> list[Row]:
    """Build every recipe in turn, so that a slow minute slows all of them."""
    workspace = sample_workspace(folder, skills=20, entries=entries)
    history = list(sample_history(messages))
    builders = {
        name: ContextBuilder(recipe=Recipe.load(name)).with_workspace(workspace).with_messages(history)
        for name in packaged()
    }
    for builder in builders.values():
        await builder.build("warm up")
    times: dict[str, list[float]] = {name: [] for name in builders}
    for _ in progress.track(range(rounds), description="building"):
        for name, builder in builders.items():
            times[name].append(await milliseconds(builder.build(_QUESTION)))
    return [await _row(name, builder, times[name]) for name, builder in builders.items()]


async def _row(name: str, builder: ContextBuilder, times: list[float]) -> Row:
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    context = await builder.build(_QUESTION)
    memory = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    receipt = context.receipt or Receipt()
    spared = sum(item.tokens for item in receipt.dropped)
    return Row(
        recipe=name,
        p50_ms=p50(times),
        p95_ms=p95(times),
        context_bytes=len(context.to_json().encode()),
        memory_bytes=max(memory, 0),
        tokens=receipt.total_tokens,
        spared_tokens=spared,
        saved=spared / max(receipt.total_tokens + spared, 1),
    )


def _show(rows: list[Row]) -> None:
    shown = table("what", "build p50", "p95", "context", "memory", "tokens", "left out", "saved")
    for row in rows:
        shown.add_row(
            row.recipe,
            f"{row.p50_ms:.2f} ms",
            f"{row.p95_ms:.2f} ms",
            f"{row.context_bytes / 1000:,.1f} kB",
            f"{row.memory_bytes / 1000:,.1f} kB",
            f"{row.tokens:,}",
            f"{row.spared_tokens:,}",
            f"{row.saved:.0%}",
        )
    out.print(shown)
    out.print(
        f"miniclaw's document promises {TIME_GOAL_MS:g} ms and {MEMORY_GOAL_BYTES / 1e6:g} MB for a typical "
        f"context; a saving of {SAVED_GOAL:.0%} is what truncation and ranking are said to bring."
    )


def main() -> None:
    parser = arguments("Time a typical build of all five recipes, with size, memory and tokens saved.")
    parser.add_argument("--rounds", type=at_least(5), default=40, help="builds of each recipe")
    parser.add_argument("--messages", type=at_least(0), default=100, help="messages of history")
    parser.add_argument("--entries", type=at_least(0), default=200, help="entries of the memory file")
    options = parser.parse_args()
    with workplace() as (folder, progress):
        rows = asyncio.run(
            measure_recipes(folder, options.messages, options.entries, options.rounds, progress)
        )
    write_json(options.json, rows)
    _show(rows)


if __name__ == "__main__":
    main()
