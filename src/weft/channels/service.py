"""What programs that talk over HTTP may ask for. The gateway does it; the channel only carries it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Protocol

from weft.types.ask import Ask
from weft.types.context import Context
from weft.types.memory import RenderedBlock
from weft.types.receipt import Receipt
from weft.types.reply import Event
from weft.types.search import MemorySearchResult
from weft.types.session import Session


class Service(Protocol):
    """The assistant, as programs see it."""

    async def opened(self, ask: Ask) -> Ask:
        """The same, in the session that it belongs to, by its id; a new one if there is none.

        Raises:
            ConfigError: there is no such model or recipe.
        """
        ...

    def stream(self, ask: Ask) -> AsyncGenerator[Event]:
        """The answer as it comes; the last event is `Done`, with the calls that the program is to make."""
        ...

    async def context(self, ask: Ask) -> Context:
        """What the model would see. No model is asked, and no session is made."""
        ...

    async def receipt(self, turn_id: str) -> Receipt | None: ...

    async def sessions(self, limit: int) -> Sequence[Session]: ...

    async def blocks(self) -> Sequence[RenderedBlock]: ...

    async def search(self, query: str, limit: int) -> Sequence[MemorySearchResult]: ...

    async def healthy(self) -> bool: ...

    def models(self) -> Sequence[str]: ...
