"""A limit on the messages of an MCP server.

The SDK reads a message whole, however long it is: a server that never ends its line fills the memory. The SDK
has no setting for this, so its reader of texts is replaced by one that counts.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from types import ModuleType
from typing import Any

MAX_PARTS = 6_000
"""How many parts a message may have: the SDK checks each of them in the event loop, in about 12 µs."""
_PART = '"type"'


class MessageMeter:
    """Counts the characters of the message that is being read; `when_over` is called if it is too long."""

    def __init__(self, limit: int, when_over: Callable[[], None] = lambda: None) -> None:
        self._limit, self._length, self._when_over = limit, 0, when_over
        self._parts = 0
        self.is_over = False

    def count(self, text: str) -> bool:
        """Count a part. Returns whether the message is still within its limit."""
        first, newline, rest = text.partition("\n")
        length, parts = self._length + len(first), self._parts + first.count(_PART)
        if not self.is_over and (length > self._limit or parts > MAX_PARTS):
            self.is_over = True
            self._when_over()
        last = rest[rest.rfind("\n") + 1 :]
        self._length, self._parts = (len(last), last.count(_PART)) if newline else (length, parts)
        return not self.is_over


METER: ContextVar[MessageMeter | None] = ContextVar("weft_mcp_meter", default=None)
"""The meter of the server whose messages a task reads."""


def limit_messages(stdio: ModuleType) -> None:
    """Let the SDK's reader of a server's output stop at a message that is too long. Twice is once."""
    stream: Any = stdio.TextReceiveStream
    if hasattr(stream, "has_meter"):
        return

    class Metered(stream):  # type: ignore[misc]
        has_meter = True

        async def receive(self) -> str:
            text: str = await super().receive()
            meter = METER.get()
            if meter is not None and not meter.count(text):
                raise stdio.anyio.BrokenResourceError
            return text

    stdio.TextReceiveStream = Metered  # type: ignore[attr-defined]
