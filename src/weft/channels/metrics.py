"""Numbers about requests and turns, in the text format of Prometheus."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

_BUCKETS = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)


@dataclass(slots=True)
class Counted:
    """A running turn. A client may disconnect once it has the answer: the turn counts as answered."""

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
        """Write all numbers in the text format of Prometheus."""
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
