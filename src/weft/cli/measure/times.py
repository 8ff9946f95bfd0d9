"""Times of work, in milliseconds."""

from __future__ import annotations

import statistics
import time
from collections.abc import Awaitable, Sequence


async def milliseconds(work: Awaitable[object]) -> float:
    """How long the work took."""
    started = time.perf_counter()
    await work
    return (time.perf_counter() - started) * 1000


def p50(times: Sequence[float]) -> float:
    return statistics.median(times)


def p95(times: Sequence[float]) -> float:
    return statistics.quantiles(times, n=20)[-1]
