"""The tools of an assistant, by name."""

from __future__ import annotations

from collections.abc import Iterable

from weft.errors import ToolError, did_you_mean
from weft.types.message import ToolDefinition


class ToolRegistry:
    """Tools in the order in which they were added. A name can be taken only once."""

    def __init__(self, tools: Iterable[ToolDefinition] = ()) -> None:
        self._tools: dict[str, ToolDefinition] = {}
        for tool in tools:
            self.add(tool)

    def add(self, tool: ToolDefinition) -> None:
        """Raises ToolError if another tool has that name."""
        if tool.name in self._tools:
            raise ToolError(f"There is a tool {tool.name!r} already: give this one another name.")
        self._tools[tool.name] = tool

    def get(self, name: str) -> ToolDefinition:
        """Raises ToolError if there is none of that name."""
        if name not in self._tools:
            raise ToolError(f"There is no tool {name!r}: {did_you_mean(name, self._tools)}")
        return self._tools[name]

    def definitions(self) -> tuple[ToolDefinition, ...]:
        return tuple(self._tools.values())
