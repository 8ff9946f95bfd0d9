"""Counts the lines that survive when two processes add to one memory at the same time.

Each writer reads the memory, thinks for a few milliseconds, and writes. A memory file that is read, changed
and overwritten loses what the other one wrote in between; a block of Weft keeps it.
"""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import weft
from timing import arguments, at_least, out, table, workplace, write_json

AGENT, LABEL = "bench", "notes"
WRITERS = 2
_BLOCK_CHARS = 1_000_000
WAYS = {
    "append": "Weft: append_to_block",
    "rewrite": "Weft: read, then update_block_text(base=version)",
    "overwrite": "file: read, change, overwrite",
    "file append": "file: opened for appending",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Survival:
    """One way of writing: the lines written by both, those that are there at the end, and the time a line.

    `write_ms` is the mean time of reading and writing one line, without the thinking time.
    """

    way: str
    written: int
    survived: int
    write_ms: float


async def write_lines(way: str, path: Path, writer: int, lines: int, think_ms: float) -> float:
    """Add `lines` lines as one writer. Returns the mean milliseconds a line, without thinking."""
    chance = random.Random(writer)
    pauses = [chance.uniform(0.5, 1.5) * think_ms / 1000 for _ in range(lines)]
    texts = [f"Writer {writer} noted fact {at}." for at in range(lines)]
    started = time.perf_counter()
    if way in ("append", "rewrite"):
        async with await weft.open(path) as store:
            started = time.perf_counter()
            for text, pause in zip(texts, pauses, strict=True):
                await _to_block(store, way, text, pause)
    else:
        for text, pause in zip(texts, pauses, strict=True):
            await asyncio.to_thread(_to_file, path, way, text, pause)
    return ((time.perf_counter() - started) - sum(pauses)) * 1000 / lines


async def _to_block(store: weft.Store, way: str, text: str, pause: float) -> None:
    document = await store.memory.get_block(AGENT, LABEL)
    assert document is not None
    before, version = document.text(), document.version
    await asyncio.sleep(pause)
    if way == "append":
        await store.memory.append_to_block(AGENT, LABEL, f"{text}\n")
    else:
        await store.memory.update_block_text(AGENT, LABEL, f"{before}{text}\n", base=version)


def _to_file(path: Path, way: str, text: str, pause: float) -> None:
    before = path.read_text("utf-8")
    time.sleep(pause)
    if way == "overwrite":
        path.write_text(f"{before}{text}\n", "utf-8")
    else:
        with path.open("a", encoding="utf-8") as file:
            file.write(f"{text}\n")


async def _prepare(way: str, path: Path) -> None:
    if way in ("append", "rewrite"):
        async with await weft.open(path) as store:
            await store.memory.create_block(AGENT, LABEL, char_limit=_BLOCK_CHARS)
    else:
        await asyncio.to_thread(path.write_text, "", "utf-8")


async def _read(way: str, path: Path) -> str:
    if way not in ("append", "rewrite"):
        return await asyncio.to_thread(path.read_text, "utf-8")
    async with await weft.open(path) as store:
        document = await store.memory.get_block(AGENT, LABEL)
        return document.text() if document else ""


def measure_way(way: str, folder: Path, lines: int, think_ms: float) -> Survival:
    """Let two processes write in one way, and count their lines."""
    path = folder / way.replace(" ", "_")
    asyncio.run(_prepare(way, path))
    options = ("--lines", str(lines), "--think-ms", str(think_ms))
    writers = [
        subprocess.Popen(  # noqa: S603 - our own script
            [
                sys.executable,
                __file__,
                *options,
                "--write",
                way,
                "--path",
                str(path),
                "--writer",
                str(number),
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(WRITERS)
    ]
    outputs = [writer.communicate(timeout=600)[0] for writer in writers]
    if any(writer.returncode for writer in writers):
        sys.exit(f"A writer failed ({WAYS[way]}): its error is above.")
    times = [float(output) for output in outputs]
    present = set(asyncio.run(_read(way, path)).splitlines())
    wanted = {f"Writer {writer} noted fact {at}." for writer in range(WRITERS) for at in range(lines)}
    return Survival(
        way=WAYS[way],
        written=len(wanted),
        survived=len(wanted & present),
        write_ms=sum(times) / len(times),
    )


def _show(rows: list[Survival]) -> None:
    shown = table("what", "written", "survived", "lost", "time a line")
    for row in rows:
        lost = f"{1 - row.survived / row.written:.0%}"
        shown.add_row(row.way, f"{row.written:,}", f"{row.survived:,}", lost, f"{row.write_ms:.2f} ms")
    out.print(shown)


def main() -> None:
    parser = arguments("Count the lines that survive when two processes add to one memory at the same time.")
    parser.add_argument("--lines", type=at_least(1), default=200, help="lines of each writer")
    parser.add_argument("--think-ms", type=float, default=5.0, help="time between reading and writing")
    parser.add_argument("--write", choices=list(WAYS), help="be one writer, for the script itself")
    parser.add_argument("--path", type=Path, help="the memory of that writer")
    parser.add_argument("--writer", type=int, default=0, help="the number of that writer")
    options = parser.parse_args()
    if options.write:
        work = write_lines(options.write, options.path, options.writer, options.lines, options.think_ms)
        out.print(asyncio.run(work))
        return
    with workplace() as (folder, progress):
        ways = progress.track(list(WAYS), description="writing")
        rows = [measure_way(way, folder, options.lines, options.think_ms) for way in ways]
    write_json(options.json, rows)
    _show(rows)


if __name__ == "__main__":
    main()
