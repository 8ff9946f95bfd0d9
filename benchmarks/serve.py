"""Times many conversations at once with `weft serve`, beside a bare handler on the same stack.

Both are real servers in processes of their own, asked over loopback in the same way. People write at random
moments, nearly as often as the delay allows. A last round without pauses shows how many turns a second there
can be; then all get into step, and each waits for the others.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from random import Random

from rich.progress import Progress

from timing import arguments, at_least, out, p50, p95, table, workplace, write_json
from weft.errors import WeftError

OVERHEAD_GOAL = 3.0
_REPLY = "It is calm at sea today, with a light wind from the west."
_WARM_UP = 20
_PARTS = 4
_SEED = 7
_SHARE = 0.9
"""How much of what the delay allows is asked for: at all of it, nobody would be free when somebody writes."""
_Line = tuple[asyncio.StreamReader, asyncio.StreamWriter]
_ADDRESS = "http://127.0.0.1:"
_BARE = Path(__file__).with_name("bare_server.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """How many people write how often, how many at a time, and how long the model takes."""

    sessions: int
    turns: int
    at_once: int
    delay_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Grown:
    """How the server does when there are so many sessions: what it adds to a turn, and its memory."""

    sessions: int
    overhead_p50_ms: float
    memory_mb: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeReport:
    """Turns a second against what the delay alone allows; what we add to a turn, beside a bare handler."""

    load: Load
    per_second: float
    bound_per_second: float
    in_step_p50_ms: float
    overhead_p50_ms: float
    overhead_p95_ms: float
    bare_p50_ms: float
    bare_p95_ms: float
    growth: tuple[Grown, ...]
    memory_mb: float
    ratio: float


async def measure_serve(folder: Path, load: Load, progress: Progress) -> ServeReport:
    """Put the load on both servers, in turns of one round each; the first round makes the sessions."""
    people = range(load.sessions)
    task = progress.add_task("answering", total=load.sessions * (2 * load.turns + 1))
    ours, bare, memory = list[float](), list[float](), list[float]()
    async with _weft(folder / "weft", load) as weft, _bare(folder / "bare", load) as other:
        await weft.in_step(range(-_WARM_UP, 0), load)
        await other.in_step(range(-_WARM_UP, 0), load)
        for _ in range(load.turns):
            ours += await weft.at_random(people, load, memory)
            progress.advance(task, load.sessions)
            bare += await other.at_random(people, load)
            progress.advance(task, load.sessions)
        started = time.perf_counter()
        in_step = await weft.in_step(people, load)
        elapsed = time.perf_counter() - started
    return ServeReport(
        load=load,
        per_second=load.sessions / elapsed,
        bound_per_second=load.at_once / (load.delay_ms / 1000) if load.delay_ms else float("inf"),
        in_step_p50_ms=p50(in_step) - load.delay_ms,
        overhead_p50_ms=p50(ours) - load.delay_ms,
        overhead_p95_ms=p95(ours) - load.delay_ms,
        bare_p50_ms=p50(bare) - load.delay_ms,
        bare_p95_ms=p95(bare) - load.delay_ms,
        growth=tuple(
            Grown(
                sessions=part.stop,
                overhead_p50_ms=p50(ours[part.start : part.stop]) - load.delay_ms,
                memory_mb=memory[part.stop - 1],
            )
            for part in _parts(load.sessions)
        ),
        memory_mb=memory[-1],
        ratio=(p50(ours) - load.delay_ms) / (p50(bare) - load.delay_ms),
    )


def _parts(sessions: int) -> Iterator[range]:
    bounds = [sessions * part // _PARTS for part in range(_PARTS + 1)]
    yield from (range(first, last) for first, last in pairwise(bounds) if first < last)


@dataclass(frozen=True, slots=True)
class _Server:
    process: asyncio.subprocess.Process
    port: int

    async def at_random(self, people: range, load: Load, memory: list[float] | None = None) -> list[float]:
        """Let each person write once, at random moments, and measure each answer.

        `load.at_once` answers are awaited at most. The memory of the server is noted after each of them.
        """
        dice = Random(_SEED)
        free, times = asyncio.Queue[_Line](), list[float]()
        for _ in range(load.at_once):
            free.put_nowait(await asyncio.open_connection("127.0.0.1", self.port))

        async def one(person: int) -> None:
            line = await free.get()
            times.append(await _timed(line, person))
            free.put_nowait(line)
            if memory is not None:
                memory.append(self.memory_mb())

        rate = _SHARE * load.at_once / max(load.delay_ms / 1000, 0.001)
        running, due = [], time.perf_counter()
        for person in people:
            due += dice.expovariate(rate)
            await asyncio.sleep(max(due - time.perf_counter(), 0))
            running.append(asyncio.create_task(one(person)))
        await asyncio.gather(*running)
        while not free.empty():
            await _closed(free.get_nowait())
        return times

    async def in_step(self, people: range, load: Load) -> list[float]:
        """Let each person write once, without pauses: each connection sends as soon as it is answered."""
        waiting, times = iter(people), list[float]()

        async def client() -> None:
            line = await asyncio.open_connection("127.0.0.1", self.port)
            for person in waiting:
                times.append(await _timed(line, person))
            await _closed(line)

        await asyncio.gather(*(client() for _ in range(load.at_once)))
        return times

    def memory_mb(self) -> float:
        """Read the resident memory of the process, where the system tells."""
        try:
            status = Path(f"/proc/{self.process.pid}/status").read_text()
        except OSError:
            return float("nan")
        return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmRSS"))


async def _timed(line: _Line, person: int) -> float:
    """Measure one answer in milliseconds."""
    started = time.perf_counter()
    await _ask(*line, person)
    return (time.perf_counter() - started) * 1000


async def _closed(line: _Line) -> None:
    line[1].close()
    await line[1].wait_closed()


async def _ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, person: int) -> None:
    """Send one message and read its answer by hand: an HTTP client would take longer than the servers."""
    body = json.dumps({"text": "How is the sea?", "session": f"talk {person}", "sender": f"person {person}"})
    head = "POST /api/turns HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
    writer.write(f"{head}content-length: {len(body)}\r\n\r\n{body}".encode())
    await writer.drain()
    head_lines = (await reader.readuntil(b"\r\n\r\n")).decode().lower().splitlines()
    length = next(line for line in head_lines if line.startswith("content-length:"))
    answer = await reader.readexactly(int(length.split(":")[1]))
    if " 200 " not in head_lines[0]:
        raise WeftError(f"The server answered: {answer.decode()[:200]}")


@asynccontextmanager
async def _weft(home: Path, load: Load) -> AsyncIterator[_Server]:
    """Run `weft serve` with a model that only waits."""
    replies = json.dumps([_REPLY] * (load.sessions * (load.turns + 1) + _WARM_UP))
    config = (
        f'provider = "scripted"\n[scripted]\nreplies = {replies}\ndelay_seconds = {load.delay_ms / 1000}\n'
        f"[http]\nport = 0\nrequests_per_minute = 1000000000\n"
        f"[gateway]\nat_once = {load.at_once}\n"
    )
    async with _running(("-m", "weft", "serve"), home, config) as server:
        yield server


@asynccontextmanager
async def _bare(home: Path, load: Load) -> AsyncIterator[_Server]:
    async with _running((str(_BARE), str(load.delay_ms / 1000)), home, "") as server:
        yield server


@asynccontextmanager
async def _running(arguments: tuple[str, ...], home: Path, config: str) -> AsyncIterator[_Server]:
    """Run a server in a process of its own, from the moment when it prints its address."""
    await asyncio.to_thread(home.mkdir)
    await asyncio.to_thread((home / "config.toml").write_text, config)
    environ = {
        name: value for name, value in os.environ.items() if not name.startswith(("WEFT_", "TELEGRAM_"))
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *arguments,
        env=environ | {"WEFT_HOME": str(home)},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    lines = process.stderr or asyncio.StreamReader()
    try:
        async for line in lines:
            if _ADDRESS in (text := line.decode()):
                reading = asyncio.create_task(lines.read())  # it must never wait for somebody to read
                yield _Server(process, int(text.split(_ADDRESS)[1].split()[0]))
                reading.cancel()
                break
        else:
            raise WeftError("The server ended before it was open: run `weft serve` to see why.")
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


def _show(report: ServeReport) -> None:
    times = table("what", "p50", "p95")
    ours, bare = (report.overhead_p50_ms, report.overhead_p95_ms), (report.bare_p50_ms, report.bare_p95_ms)
    times.add_row("a turn, without the model", *(f"{one:.1f} ms" for one in ours))
    times.add_row("a bare handler", *(f"{one:.1f} ms" for one in bare))
    out.print(times)
    out.print(
        f"turn / bare: {report.ratio:.1f} (goal at most {OVERHEAD_GOAL:g}); without pauses "
        f"{report.per_second:,.0f} turns a second of {report.bound_per_second:,.0f} that the delay allows, "
        f"and {report.in_step_p50_ms:.1f} ms at the median, since all get into step"
    )
    growth = table("sessions", "p50", "memory")
    for step in report.growth:
        p50_text, memory = f"{step.overhead_p50_ms:.1f} ms", f"{step.memory_mb:.0f} MB"
        growth.add_row(f"{step.sessions:,}", p50_text, memory)
    out.print(growth)
    out.print(f"memory at the end: {report.memory_mb:.0f} MB")


def main() -> None:
    parser = arguments("Time `weft serve` with many conversations at once, beside a bare handler.")
    parser.add_argument("--sessions", type=at_least(2), default=1_000, help="people who write")
    parser.add_argument("--turns", type=at_least(2), default=2, help="messages of each person")
    parser.add_argument("--at-once", type=at_least(1), default=50, help="messages at the same time")
    parser.add_argument("--delay-ms", type=float, default=1000.0, help="time that the model takes")
    options = parser.parse_args()
    load = Load(
        sessions=options.sessions, turns=options.turns, at_once=options.at_once, delay_ms=options.delay_ms
    )
    with workplace() as (folder, progress):
        report = asyncio.run(measure_serve(folder, load, progress))
    write_json(options.json, report)
    _show(report)


if __name__ == "__main__":
    main()
