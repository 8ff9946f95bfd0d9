"""Many conversations at once through the gateway, beside a bare handler that stores a message and answers."""

from __future__ import annotations

import asyncio
import resource
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path

from rich.progress import Progress

from weft.app import connect
from weft.cli.measure.times import p50, p95
from weft.config import Config, Paths
from weft.gateway.pipeline import Gateway, GatewaySettings
from weft.providers.scripted import ScriptedProvider
from weft.types.message import Message
from weft.types.post import Inbound, Outbound

OVERHEAD_GOAL = 4.0
_REPLY = "It is calm at sea today, with a light wind from the west."


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """How many people write how often, how many at a time, and how long the model takes."""

    sessions: int
    turns: int
    at_once: int
    delay_ms: float


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
    first_half_p50_ms: float
    second_half_p50_ms: float
    grown_mb: float

    @property
    def ratio(self) -> float:
        return self.overhead_p50_ms / self.bare_p50_ms


class _Sink:
    """A channel that delivers at once and says when each place was answered."""

    name = "bench"

    def __init__(self) -> None:
        self._waiting: dict[str, asyncio.Future[None]] = {}

    def expect(self, place: str) -> asyncio.Future[None]:
        future = self._waiting[place] = asyncio.get_running_loop().create_future()
        return future

    async def send(self, message: Outbound) -> None:
        self._waiting.pop(message.conversation).set_result(None)

    async def typing(self, conversation: str) -> None: ...


async def measure_serve(folder: Path, load: Load, progress: Progress) -> ServeReport:
    """The load twice: through the gateway, and through the bare handler, in turns of one round each."""
    total = load.sessions * load.turns
    delay = load.delay_ms / 1000
    config = replace(Config(), paths=Paths(config_dir=folder, data_dir=folder))
    provider = ScriptedProvider([_REPLY] * total, delay_seconds=delay)
    app = await connect(config, provider=provider)
    store, sink = await app.store.get(), _Sink()
    people = {str(person) for person in range(load.sessions)}
    settings = GatewaySettings(at_once=load.at_once, typing_seconds=3600.0)
    gateway = Gateway(app, [sink], allowed={"bench": people}, settings=settings)
    sending = asyncio.create_task(gateway.deliver())

    async def through(person: int, turn: int) -> None:
        text = f"How is the sea, turn {turn}?"
        place = str(person)
        answered = sink.expect(place)
        message = Inbound(
            channel="bench", conversation=place, sender=place, text=text, external_id=f"{place}-{turn}"
        )
        await gateway.submit(message)
        await answered

    bare_session = (await store.sessions.new("bare", "bare", "bare")).id

    async def bare(person: int, turn: int) -> None:
        await store.messages.append(bare_session, Message(role="user", content=f"How is the sea, {person}?"))
        await asyncio.sleep(delay)

    task = progress.add_task("answering", total=2 * total)
    before = _memory_mb()
    times: list[float] = []
    bares: list[float] = []
    elapsed = 0.0
    for turn in range(load.turns):
        started = time.perf_counter()
        times += await _round(through, load, turn)
        elapsed += time.perf_counter() - started
        bares += await _round(bare, load, turn)
        progress.advance(task, 2 * load.sessions)
    await gateway.stop()
    await sending
    await app.close()
    over = [taken - load.delay_ms for taken in times]
    half = len(over) // 2
    return ServeReport(
        load=load,
        per_second=total / elapsed,
        bound_per_second=load.at_once / delay if delay else float("inf"),
        overhead_p50_ms=p50(over),
        overhead_p95_ms=p95(over),
        bare_p50_ms=p50([taken - load.delay_ms for taken in bares]),
        bare_p95_ms=p95([taken - load.delay_ms for taken in bares]),
        first_half_p50_ms=p50(over[:half]),
        second_half_p50_ms=p50(over[half:]),
        grown_mb=_memory_mb() - before,
    )


async def _round(work: Callable[[int, int], Awaitable[None]], load: Load, turn: int) -> list[float]:
    """One turn of every person, so many at a time; how long each took, in milliseconds."""
    slots = asyncio.Semaphore(load.at_once)
    times: list[float] = []

    async def one(person: int) -> None:
        async with slots:
            started = time.perf_counter()
            await work(person, turn)
            times.append((time.perf_counter() - started) * 1000)

    await asyncio.gather(*(one(person) for person in range(load.sessions)))
    return times


def _memory_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
