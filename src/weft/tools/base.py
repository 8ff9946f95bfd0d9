"""What a tool is: how a model is told of it, and what runs when it is called."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from weft.types.message import ToolDefinition
from weft.types.request import Caller

Runner = Callable[[Mapping[str, Any], Caller], Awaitable[str]]
"""Does the work and returns what the model reads. A ToolError is a failure that the model reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool that can be called. `source` says where it comes from: a skill, a server, Weft itself.

    One that `leads` is told to the model before all others.
    """

    definition: ToolDefinition
    run: Runner
    source: str = ""
    leads: bool = False

    @property
    def name(self) -> str:
        return self.definition.name


class ToolSource(Protocol):
    """Offers tools that depend on the message, or on files that may change."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """Why some of its tools were not offered the last time, a sentence each."""
        ...

    async def tools(self, message: str) -> Sequence[Tool]: ...

    async def close(self) -> None: ...
