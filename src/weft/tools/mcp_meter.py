"""A limit on the messages of an MCP server.

The SDK reads a message whole, however long it is: a server that never ends its line fills the memory. The SDK
has no setting for this, so its reader of texts is replaced by one that counts.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from types import ModuleType
from typing import Any


class MessageMeter:
    """Counts the characters of the message that is being read; `when_over` is called if it is too long."""

    def __init__(self, limit: int, when_over: Callable[[], None] = lambda: None) -> None:
        self._limit, self._length, self._when_over = limit, 0, when_over
        self.is_over = False

    def count(self, text: str) -> bool:
        """Count a part. Returns whether the message is still within its limit."""
        first, newline, _ = text.partition("\n")
        if not self.is_over and self._length + len(first) > self._limit:
            self.is_over = True
            self._when_over()
        self._length = len(text) - text.rfind("\n") - 1 if newline else self._length + len(text)
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
