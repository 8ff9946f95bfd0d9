"""Times the first token of the embedded model, which has a real prefix cache, with epochs and without.

The two take turns in one run, each with a model of its own, so that a slow minute slows both.
"""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

from rich.progress import Progress

import weft
from stability import exchanges
from timing import arguments, at_least, out, p50, p95, table, workplace, write_json
from weft.providers.local import LocalProvider, LocalSettings
from weft.types.recipe import HistoryRule


@dataclass(slots=True)
class Run:
    """One recipe: its assistant, and the seconds to the first token of each turn."""

    name: str
    app: weft.Assistant
    seconds: list[float] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The median, the slow end and the sum of both, in seconds, and how many times as long live takes."""

    turns: int
    epoch_p50: float
    epoch_p95: float
    epoch_sum: float
    live_p50: float
    live_p95: float
    live_sum: float
    live_by_epoch: float


async def _open(name: str, folder: Path) -> Run:
    os.environ["WEFT_HOME"] = str(folder)
    settings = LocalSettings(max_output_tokens=12)
    app = await weft.connect(provider=LocalProvider(settings), database=folder / "weft.db")
    if name == "live":
        recipe = replace(app.engine.builder.recipe, stability="live", history=HistoryRule())
        app.engine = replace(app.engine, builder=weft.ContextBuilder(recipe=recipe))
    return Run(name, app)


async def _ask(run: Run, at: int, message: str) -> None:
    store = await run.app.store.get()
    if at % 7 == 6:
        await store.memory.append_to_block("weft", "notes", f"In turn {at} this was noted.\n")
    if at % 5 == 4:
        await store.facts.set("app:owner", f"fact_{at}", f"value of turn {at}")
    started, first = time.perf_counter(), 0.0
    async for event in run.app.stream(message, "talk"):
        if isinstance(event, weft.TextDelta) and not first:
            first = time.perf_counter() - started
    run.seconds.append(first)


async def measure(folder: Path, path: Path | None, turns: int, progress: Progress) -> Report:
    """Talk through the same messages with both recipes, turn by turn."""
    said, _ = exchanges(path, turns)
    for name in ("epoch", "live"):
        await asyncio.to_thread((folder / name).mkdir)
    epoch, live = await _open("epoch", folder / "epoch"), await _open("live", folder / "live")
    for at in progress.track(range(turns), description="talking"):
        for run in (epoch, live) if at % 2 else (live, epoch):
            await _ask(run, at, said[at][0])
    for run in (epoch, live):
        await run.app.close()
    return Report(
        turns=turns,
        epoch_p50=p50(epoch.seconds),
        epoch_p95=p95(epoch.seconds),
        epoch_sum=sum(epoch.seconds),
        live_p50=p50(live.seconds),
        live_p95=p95(live.seconds),
        live_sum=sum(live.seconds),
        live_by_epoch=sum(live.seconds) / sum(epoch.seconds),
    )


def main() -> None:
    parser = arguments("Time the first token of the embedded model with epochs and with a live recipe.")
    parser.add_argument("path", nargs="?", type=Path, help="conversations as JSON; without one some are made")
    parser.add_argument("--turns", type=at_least(4), default=30, help="turns of the conversation")
    options = parser.parse_args()
    with workplace() as (folder, progress):
        report = asyncio.run(measure(folder, options.path, options.turns, progress))
    write_json(options.json, report)
    rows = table("what", "p50", "p95", "all turns")
    rows.add_row("epochs", *(f"{s:.2f} s" for s in (report.epoch_p50, report.epoch_p95, report.epoch_sum)))
    rows.add_row("live", *(f"{s:.2f} s" for s in (report.live_p50, report.live_p95, report.live_sum)))
    out.print(rows)
    out.print(f"time to the first token, live / epochs, {report.turns} turns: {report.live_by_epoch:.1f}")


if __name__ == "__main__":
    main()
