"""What programs that talk over HTTP may ask for. The gateway does it; the channel only carries it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from weft.types.context import Context
from weft.types.message import Message, ToolDefinition
from weft.types.receipt import Receipt
from weft.types.records import MemorySearchResult, RenderedBlock, Session
from weft.types.reply import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A message from a program, with what it brings along.

    `history` and `steps` are what the program says was said before and since the message; then its own
    history is shown in place of a session's. Tools given here run at the program.
    """

    text: str
    session: str = ""
    sender: str = "owner"
    recipe: str = ""
    model: str = ""
    instructions: str = ""
    history: tuple[Message, ...] = ()
    steps: tuple[Message, ...] = ()
    tools: tuple[ToolDefinition, ...] = ()


class Service(Protocol):
    """The assistant, as programs see it."""

    def stream(self, ask: Ask) -> AsyncGenerator[Event]: ...

    async def context(self, ask: Ask) -> Context: ...

    async def receipt(self, turn_id: str) -> Receipt: ...

    async def sessions(self, limit: int) -> Sequence[Session]: ...

    async def blocks(self) -> Sequence[RenderedBlock]: ...

    async def search(self, query: str, limit: int) -> Sequence[MemorySearchResult]: ...

    async def health(self) -> Mapping[str, Any]: ...

    def models(self) -> Sequence[str]: ...
