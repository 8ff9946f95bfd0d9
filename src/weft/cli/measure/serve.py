"""Many conversations at once with `weft serve`, beside a bare handler on the same stack.

Both are real servers in processes of their own, asked over loopback in the same way. Their clients do not
start at the same moment but one after the other within one delay, as people do; with `together` they do.
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

from rich.progress import Progress

from weft.cli.measure.times import p50, p95
from weft.errors import WeftError

OVERHEAD_GOAL = 4.0
_REPLY = "It is calm at sea today, with a light wind from the west."
_WARM_UP = 20
_PARTS = 4
_ADDRESS = "http://127.0.0.1:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """How many people write how often, how many at a time, and how long the model takes."""

    sessions: int
    turns: int
    at_once: int
    delay_ms: float
    together: bool = False


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
    overhead_p50_ms: float
    overhead_p95_ms: float
    bare_p50_ms: float
    bare_p95_ms: float
    growth: tuple[Grown, ...]
    memory_mb: float

    @property
    def ratio(self) -> float:
        return self.overhead_p50_ms / self.bare_p50_ms


async def measure_serve(folder: Path, load: Load, progress: Progress) -> ServeReport:
    """The load on both servers, in turns of one round each; the first round makes the sessions."""
    task = progress.add_task("answering", total=2 * load.sessions * load.turns)
    ours, bare, memory = list[float](), list[float](), list[float]()
    elapsed = 0.0
    async with _weft(folder / "weft", load) as weft, _bare(folder / "bare", load) as other:
        await weft.round(range(-_WARM_UP, 0), load)
        await other.round(range(-_WARM_UP, 0), load)
        for _ in range(load.turns):
            started = time.perf_counter()
            ours += await weft.round(range(load.sessions), load, memory)
            elapsed += time.perf_counter() - started
            progress.advance(task, load.sessions)
            bare += await other.round(range(load.sessions), load)
            progress.advance(task, load.sessions)
    return ServeReport(
        load=load,
        per_second=len(ours) / elapsed,
        bound_per_second=load.at_once / (load.delay_ms / 1000) if load.delay_ms else float("inf"),
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
    )


def _parts(sessions: int) -> Iterator[range]:
    bounds = [sessions * part // _PARTS for part in range(_PARTS + 1)]
    yield from (range(first, last) for first, last in pairwise(bounds) if first < last)


@dataclass(frozen=True, slots=True)
class _Server:
    process: asyncio.subprocess.Process
    port: int

    async def round(self, people: range, load: Load, memory: list[float] | None = None) -> list[float]:
        """One turn of each of them, so many at a time; how long each took, in milliseconds.

        After each of them the memory of the server is noted, where that is wanted.
        """
        waiting, times = iter(people), list[float]()

        async def client(number: int) -> None:
            if not load.together:
                await asyncio.sleep(number * load.delay_ms / 1000 / load.at_once)
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
            for person in waiting:
                started = time.perf_counter()
                await _ask(reader, writer, person)
                times.append((time.perf_counter() - started) * 1000)
                if memory is not None:
                    memory.append(self.memory_mb())
            writer.close()
            await writer.wait_closed()

        await asyncio.gather(*(client(number) for number in range(load.at_once)))
        return times

    def memory_mb(self) -> float:
        """What the process holds now, where the system tells."""
        try:
            told = Path(f"/proc/{self.process.pid}/status").read_text()
        except OSError:
            return float("nan")
        return next(int(line.split()[1]) / 1024 for line in told.splitlines() if line.startswith("VmRSS"))


async def _ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, person: int) -> None:
    """One message and its answer, by hand: a client of many features would take longer than the servers."""
    body = json.dumps({"text": "How is the sea?", "session": f"talk {person}", "sender": f"person {person}"})
    head = "POST /api/turns HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
    writer.write(f"{head}content-length: {len(body)}\r\n\r\n{body}".encode())
    await writer.drain()
    told = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    length = next(line for line in told.splitlines() if line.startswith("content-length:"))
    answer = await reader.readexactly(int(length.split(":")[1]))
    if " 200 " not in told.splitlines()[0]:
        raise WeftError(f"The server answered: {answer.decode()[:200]}")


@asynccontextmanager
async def _weft(home: Path, load: Load) -> AsyncIterator[_Server]:
    """`weft serve`, with a model that takes its time and nothing else."""
    replies = json.dumps([_REPLY] * (load.sessions * load.turns + _WARM_UP))
    config = (
        f'provider = "scripted"\n[scripted]\nreplies = {replies}\ndelay_seconds = {load.delay_ms / 1000}\n'
        f"[http]\nport = 0\nrequests_per_minute = 1000000000\nat_once = {load.at_once}\n"
    )
    async with _running(("-m", "weft", "serve"), home, config) as server:
        yield server


@asynccontextmanager
async def _bare(home: Path, load: Load) -> AsyncIterator[_Server]:
    async with _running(("-m", "weft.cli.measure.bare", str(load.delay_ms / 1000)), home, "") as server:
        yield server


@asynccontextmanager
async def _running(arguments: tuple[str, ...], home: Path, config: str) -> AsyncIterator[_Server]:
    """A server in a process of its own, from the moment when it tells its address."""
    await asyncio.to_thread(home.mkdir)
    await asyncio.to_thread((home / "config.toml").write_text, config)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("WEFT_", "TELEGRAM_"))}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *arguments,
        env=kept | {"WEFT_HOME": str(home)},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    told = process.stderr or asyncio.StreamReader()
    try:
        async for line in told:
            if _ADDRESS in (text := line.decode()):
                reading = asyncio.create_task(told.read())  # it must never wait for somebody to read
                yield _Server(process, int(text.split(_ADDRESS)[1].split()[0]))
                reading.cancel()
                break
        else:
            raise WeftError("The server ended before it was open: run `weft serve` to see why.")
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()
