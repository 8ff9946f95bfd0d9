"""Measures how long the largest allowed input of each way in stops the event loop, and what held it."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import sys
import threading
import time
import traceback
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from rich.progress import Progress

from entries import Entry, Place, entries
from timing import arguments, at_least, out, workplace, write_json
from weft.cli.serve import spare_collector

GOAL_MS = 100.0
_BEAT_SECONDS = 0.002
_LATE_SECONDS = 0.02
_SWITCH_SECONDS = 0.0005
_FRAMES = 6
_IDLE = frozenset(
    {"wait", "_worker", "select", "readinto", "_next_group", "_write_forever", "refresh", "send"}
)


@dataclass(frozen=True, slots=True)
class Row:
    """One way in: the longest stop of the loop, the time of all of it, and the stack that held the loop."""

    entry: str
    worst_ms: float
    whole_ms: float
    stack: tuple[str, ...]


class Heart:
    """A task that beats every few milliseconds, and a thread that looks at the loop when a beat is late."""

    def __init__(self) -> None:
        self.worst, self.stack = 0.0, tuple[str, ...]()
        self._beat_at, self._latest_look = time.perf_counter(), 0.0
        self._loop_thread, self._ended = threading.get_ident(), threading.Event()
        self._watchdog = threading.Thread(target=self._watch, daemon=True)

    async def beside(self, work: Awaitable[object]) -> None:
        """Do some work beside the heart."""
        self._beat_at = time.perf_counter()
        beating = asyncio.create_task(self._beat())
        self._watchdog.start()
        try:
            await work
            await asyncio.sleep(2 * _BEAT_SECONDS)
        finally:
            beating.cancel()
            self._ended.set()
            self._watchdog.join()

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(_BEAT_SECONDS)
            now = time.perf_counter()
            self.worst = max(self.worst, now - self._beat_at - _BEAT_SECONDS)
            self._beat_at, self._latest_look = now, 0.0

    def _watch(self) -> None:
        longest = 0.0
        while not self._ended.wait(_LATE_SECONDS / 4):
            late = time.perf_counter() - self._beat_at
            if late > max(_LATE_SECONDS, longest):
                longest, self.stack = late, _described(self._holder(sys._current_frames()))

    def _holder(self, frames: dict[int, FrameType]) -> FrameType:
        """Return where the loop is, or, if it waits for its next turn to run, the thread that runs."""
        frame = frames.pop(self._loop_thread)
        frames.pop(threading.get_ident(), None)
        if frame.f_code.co_name != "select":
            return frame
        return next((other for other in frames.values() if other.f_code.co_name not in _IDLE), frame)


def _described(frame: FrameType) -> tuple[str, ...]:
    """Return the innermost calls of a stack, the innermost first."""
    calls = traceback.extract_stack(frame)
    places = [f"{call.name} ({Path(call.filename).name}:{call.lineno})" for call in calls]
    return tuple(reversed([place for place in places if "(base_events.py" not in place][-_FRAMES:]))


async def measure_entry(entry: Entry, place: Place) -> Row:
    """Prepare an entry, then let it in beside a heart."""
    work: Callable[[], Awaitable[object]] = await entry.prepare(place)
    gc.collect()
    heart, started = Heart(), time.perf_counter()
    await heart.beside(work())
    whole = time.perf_counter() - started
    return Row(entry.name, heart.worst * 1000, whole * 1000, heart.stack)


async def measure(folder: Path, size: int, only: str, progress: Progress) -> list[Row]:
    chosen = [entry for entry in entries() if only in entry.name]
    async with Place.opened(folder, size) as place:
        spare_collector()  # as `weft serve` does
        return [await measure_entry(entry, place) for entry in progress.track(chosen, description="beating")]


def markdown(rows: list[Row]) -> str:
    """Write a table by entry; the stack only where it was late."""
    lines = ["| entry | longest stop | in all | held by |", "|---|---:|---:|---|"]
    for row in rows:
        held = " < ".join(row.stack[:4]) if row.worst_ms > GOAL_MS / 2 else ""
        lines.append(f"| {row.entry} | {row.worst_ms:.0f} ms | {row.whole_ms:.0f} ms | {held} |")
    late = sum(row.worst_ms > GOAL_MS for row in rows)
    goal = f"{len(rows) - late} of {len(rows)} stop the loop for at most {GOAL_MS:.0f} ms."
    return "\n".join((*lines, "", goal))


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--bytes", type=at_least(1000), default=4 * 1024 * 1024, help="size of an input")
    parser.add_argument("--only", default="", metavar="TEXT", help="only entries with this in their names")
    chosen = parser.parse_args()
    logging.disable(logging.CRITICAL)
    sys.setswitchinterval(_SWITCH_SECONDS)  # as `weft serve` does
    with workplace() as (folder, progress):
        os.environ["WEFT_HOME"] = str(folder)
        rows = asyncio.run(measure(folder, chosen.bytes, chosen.only, progress))
    out.print(markdown(rows), soft_wrap=True, markup=False)
    write_json(chosen.json, rows)


if __name__ == "__main__":
    main()
