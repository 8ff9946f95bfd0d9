"""What is said: messages, the calls inside them, and the tools that can be called."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from weft.types.codec import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall(Json):
    """One call a model asked for."""

    id: str
    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


_ONLY_TUPLES: set[type] = {tuple}


@dataclass(frozen=True, slots=True, kw_only=True)
class Message(Json):
    """One entry of a conversation, in any role.

    The same value serves every system: a user's line, a reply with calls, a tool's result. `role` is any
    text; what becomes of an unknown one is the recipe's business. `provider_data` holds opaque signed
    matter that only the model it came from may see again. `attached` is text of ours that was sent in front
    of the content, and is sent there again for as long as the epoch lasts. `outside` names the places from
    which text of strangers in it comes, whoever wrote the rest. `name` is who said it, where several people
    talk; search and recall show it.
    """

    role: str
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    tool_name: str | None = None
    timestamp: datetime | None = None
    origin: str = "user"
    parts: tuple[Mapping[str, Any], ...] = ()
    provider_data: Mapping[str, Any] = field(default_factory=dict)
    attached: str = ""
    outside: tuple[str, ...] = ()
    name: str = ""

    def __post_init__(self) -> None:
        if isinstance(self.timestamp, str):
            object.__setattr__(self, "timestamp", datetime.fromisoformat(self.timestamp))
        kinds: set[type] = {type(self.tool_calls), type(self.parts), type(self.outside)}
        if kinds == _ONLY_TUPLES:
            return  # a build makes hundreds of messages
        for name in ("tool_calls", "parts", "outside"):
            object.__setattr__(self, name, tuple(getattr(self, name)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDefinition(Json):
    """A tool as it is declared to the model. How it runs is the business of `tools/`."""

    name: str
    description: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def to_json_dict(self) -> dict[str, Any]:
        """Return the function shape of most chat APIs, without a description if there is none."""
        function: dict[str, Any] = {"name": self.name}
        if self.description is not None:
            function["description"] = self.description
        function["parameters"] = dict(self.parameters)
        return {"type": "function", "function": function}


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServer(Json):
    """An MCP server that a skill declares. Its name is also its key in settings and tool patterns."""

    name: str = ""
    command: str = ""
    args: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "args", tuple(self.args))
