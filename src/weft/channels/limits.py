"""How often one client may ask over HTTP."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

_MAX_CLIENTS = 4096


class RateLimit:
    """A token bucket for each client, filled with a minute's requests."""

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._clock = per_minute, clock
        self._left: dict[str, tuple[float, float]] = {}

    def wait_seconds(self, client: str) -> int:
        """Take one request. Returns 0, or the seconds until there is one to take."""
        if not self._most:
            return 0
        now, rate = self._clock(), self._most / 60
        left, since = self._left.pop(client, (float(self._most), now))
        left = min(self._most, left + (now - since) * rate)
        wait = 0 if left >= 1 else math.ceil((1 - left) / rate)
        self._left[client] = (left if wait else left - 1, now)
        if len(self._left) > _MAX_CLIENTS:  # evict the client that was silent for longest
            self._left.pop(next(iter(self._left)))
        return wait
