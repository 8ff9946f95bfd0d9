"""What a tool is: its definition for the model, and the function that runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from weft.types.message import ToolDefinition
from weft.types.request import Caller
from weft.types.rules import ToolRule

Runner = Callable[[Mapping[str, Any], Caller], Awaitable[str]]
"""Runs the tool and returns the text for the model. A ToolError becomes an error text for the model."""

FrozenTools = Callable[[], Awaitable[Mapping[str, ToolDefinition]]]
"""Returns the tools that the running epoch of a session froze, by their names."""
ToolKind = Literal["read", "asks", "memory", "tasks", "programs", "servers", "send", "other"]
"""What a tool does: it only reads, asks the person itself each time, or acts in one of several ways."""
Order = Literal["", "remember", "forget", "remind", "cancel"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool that can be called. `source` says where it comes from: a skill, a server, Weft itself.

    A tool that `leads` is declared before all others. Its results have its `origin`. In a turn that has read
    text of strangers its `kind` decides whether it needs the consent of the person, and `order` names the
    words with which they ask for it themselves; without such words a change always needs it. A tool that is
    `owner_only` is offered in conversations of the owner alone. `load` returns the tool itself where this one
    only stands for it: a call loads it before anything is decided about the call.
    """

    definition: ToolDefinition
    run: Runner
    source: str = ""
    leads: bool = False
    origin: str = "tool"
    kind: ToolKind = "other"
    order: Order = ""
    owner_only: bool = False
    load: Callable[[], Awaitable[Tool]] | None = None

    @property
    def name(self) -> str:
        return self.definition.name


class ToolSource(Protocol):
    """A source of tools that depend on the message, or on files that may change.

    It may also have `async def keep(message, frozen)`, which returns the tools that `frozen` names and that
    the message alone would not bring.
    """

    @property
    def warnings(self) -> tuple[str, ...]:
        """One sentence for each tool that was left out the last time."""
        ...

    @property
    def rules(self) -> tuple[ToolRule, ...]:
        """Rules about its tools, as of the last time."""
        ...

    async def tools(self, message: str) -> Sequence[Tool]: ...

    async def close(self) -> None: ...
