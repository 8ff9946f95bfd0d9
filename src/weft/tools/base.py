"""What a tool is: how a model is told of it, and what runs when it is called."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from weft.types.memory import RenderedBlock
from weft.types.message import ToolDefinition

Ask = Callable[[str], Awaitable[bool]]
"""Puts a question to a person and tells whether they agree."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """For whom a tool runs, and where: it comes from the program, never from the model.

    `conversation` is the place in the channel. `ask` puts a question to the person there and tells whether
    they agree; without it nobody can be asked, and nobody agrees. `shown_blocks` has the caller's own blocks,
    by label, as the model last saw them in this turn. A tool that changes one puts the new state there.
    """

    agent_id: str = ""
    channel: str = ""
    sender_id: str = ""
    session_id: str = ""
    conversation: str = ""
    ask: Ask | None = field(default=None, compare=False, repr=False)
    shown_blocks: dict[str, RenderedBlock] = field(default_factory=dict, compare=False, repr=False)

    @property
    def sender(self) -> str:
        return f"{self.channel}:{self.sender_id}"


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
