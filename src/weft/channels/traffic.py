"""How much goes on: how often somebody may ask, how many turns run at once, and numbers of all that."""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass

from weft.errors import ChannelError

_MOST_CLIENTS = 4096
_BUCKETS = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)


class RateLimit:
    """So many requests a minute for each client; unused ones add up to a minute's worth."""

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._clock = per_minute, clock
        self._left: dict[str, tuple[float, float]] = {}

    def wait_seconds(self, client: str) -> int:
        """Take one request; 0, or in how many seconds there will be one to take."""
        if not self._most:
            return 0
        now, rate = self._clock(), self._most / 60
        left, since = self._left.pop(client, (float(self._most), now))
        left = min(self._most, left + (now - since) * rate)
        wait = 0 if left >= 1 else math.ceil((1 - left) / rate)
        self._left[client] = (left if wait else left - 1, now)
        if len(self._left) > _MOST_CLIENTS:  # the one that has been silent for longest
            self._left.pop(next(iter(self._left)))
        return wait


class Line:
    """Turns that run side by side, and a line of those that wait."""

    def __init__(self, at_once: int, max_waiting: int) -> None:
        self._room, self._most_waiting = asyncio.Semaphore(max(at_once, 1)), max_waiting
        self._waiting = 0

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Raises ChannelError if the line is full."""
        if self._room.locked() and self._waiting >= self._most_waiting:
            raise ChannelError("Too many others are waiting for an answer: ask again in a moment.", retry=1)
        self._waiting += 1
        try:
            await self._room.acquire()
        finally:
            self._waiting -= 1
        try:
            yield
        finally:
            self._room.release()


@dataclass(slots=True)
class Counted:
    """A turn that runs. Whoever has its answer may stop listening: it is answered all the same."""

    outcome: str = ""


class Metrics:
    """Numbers for Prometheus."""

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, int]] = Counter()
        self._outcomes: Counter[str] = Counter(answered=0, failed=0, cancelled=0)
        self._within: Counter[float] = Counter()
        self._running, self._seconds = 0, 0.0

    def request(self, route: str, status: int) -> None:
        self._requests[route, status] += 1

    @contextmanager
    def turn(self) -> Iterator[Counted]:
        """Count a turn, how it ends and how long it took."""
        began, turn = time.monotonic(), Counted()
        self._running += 1
        try:
            yield turn
        except (asyncio.CancelledError, GeneratorExit):
            turn.outcome = turn.outcome or "cancelled"
            raise
        finally:
            self._running -= 1
            self._outcomes[turn.outcome or "failed"] += 1
            took = time.monotonic() - began
            self._seconds += took
            self._within.update(bucket for bucket in _BUCKETS if took <= bucket)

    def text(self) -> str:
        """All numbers, as Prometheus reads them."""
        turns = sum(self._outcomes.values())
        return "\n".join(
            [
                "# HELP weft_requests_total Requests by route and status.",
                "# TYPE weft_requests_total counter",
                *(
                    f'weft_requests_total{{route="{route}",status="{status}"}} {count}'
                    for (route, status), count in sorted(self._requests.items())
                ),
                "# HELP weft_turns_running Turns that are being answered.",
                "# TYPE weft_turns_running gauge",
                f"weft_turns_running {self._running}",
                "# HELP weft_turns_total Turns by how they ended.",
                "# TYPE weft_turns_total counter",
                *(f'weft_turns_total{{outcome="{name}"}} {n}' for name, n in sorted(self._outcomes.items())),
                "# HELP weft_turn_seconds How long turns took.",
                "# TYPE weft_turn_seconds histogram",
                *(f'weft_turn_seconds_bucket{{le="{most:g}"}} {self._within[most]}' for most in _BUCKETS),
                f'weft_turn_seconds_bucket{{le="+Inf"}} {turns}',
                f"weft_turn_seconds_sum {self._seconds:.6f}",
                f"weft_turn_seconds_count {turns}",
                "",
            ]
        )
