"""What every provider can do."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Protocol

from weft.errors import ProviderError
from weft.types.context import Context
from weft.types.limits import ModelInfo
from weft.types.reply import Done, Event, Reply


class Provider(Protocol):
    """Talks to one vendor, or stands in for one."""

    @property
    def info(self) -> ModelInfo:
        """The model that will answer, and how much it can read."""
        ...

    def stream(self, context: Context) -> AsyncGenerator[Event]:
        """The answer as it comes; the last event is `Done`. Raises ProviderError."""
        ...

    async def complete(self, context: Context) -> Reply:
        """The answer as a whole. Raises ProviderError."""
        ...

    async def close(self) -> None: ...


async def collected(events: AsyncGenerator[Event]) -> Reply:
    """The reply at the end of a stream.

    Raises:
        ProviderError: the stream ended without one.
    """
    async with aclosing(events):
        async for event in events:
            if isinstance(event, Done):
                return event.reply
    raise ProviderError("The answer broke off before its end: ask again.")
