"""The protocol of providers."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Protocol

from weft.errors import ProviderError
from weft.types.context import Context
from weft.types.limits import ModelInfo
from weft.types.reply import Done, Event, Reply

BROKE_OFF = "The answer broke off before its end: ask again."


class Provider(Protocol):
    """Something that answers a context: a vendor's model, an embedded one, or a script."""

    @property
    def info(self) -> ModelInfo:
        """Return the model that answers, and how much it can read."""
        ...

    def stream(self, context: Context) -> AsyncGenerator[Event]:
        """Yield the answer as it comes; the last event is `Done`. Raises ProviderError."""
        ...

    async def complete(self, context: Context) -> Reply:
        """Return the answer as a whole. Raises ProviderError."""
        ...

    async def close(self) -> None: ...


FindWindow = Callable[[str], Awaitable[int | None]]
"""Returns the window of a model that is known from an earlier time, by the model's id."""


async def describe(provider: Provider, find_window: FindWindow | None = None) -> ModelInfo:
    """Return the model of a provider, with what its server says of it where it can be asked.

    A window that is known from an earlier time is not asked for.
    """
    ask = getattr(provider, "describe", None)
    info: ModelInfo = await ask(find_window) if ask is not None else provider.info
    return info


async def collected(events: AsyncGenerator[Event]) -> Reply:
    """Return the reply at the end of a stream.

    Raises:
        ProviderError: the stream ended without one.
    """
    async with aclosing(events):
        async for event in events:
            if isinstance(event, Done):
                return event.reply
    raise ProviderError(BROKE_OFF, log_text=BROKE_OFF)
