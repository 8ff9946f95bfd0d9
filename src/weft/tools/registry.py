"""The tools of an assistant, by name, from wherever they come."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from weft.errors import ToolError, did_you_mean
from weft.tools.base import Tool, ToolSource
from weft.tools.function import tool_from
from weft.types.message import ToolDefinition


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """The tools of one turn: as the model is told of them, and those that can be run here."""

    definitions: tuple[ToolDefinition, ...] = ()
    tools: Mapping[str, Tool] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


class ToolRegistry:
    """Tools in the order in which they were added. A name can be taken only once.

    A function becomes a tool by its signature and its docstring. A plain definition is told to the model but
    runs elsewhere: its calls come back to the caller. What a source offers stands behind the tools that were
    added, and is asked for anew with every message.
    """

    def __init__(
        self,
        tools: Iterable[Tool | ToolDefinition | Callable[..., Any]] = (),
        *,
        sources: Iterable[ToolSource] = (),
    ) -> None:
        self._tools: dict[str, Tool | ToolDefinition] = {}
        self._sources = tuple(sources)
        for tool in tools:
            self.add(tool)

    def add(self, tool: Tool | ToolDefinition | Callable[..., Any]) -> None:
        """Raises ToolError if another tool has that name, or a function cannot be one."""
        if not isinstance(tool, Tool | ToolDefinition):
            tool = tool_from(tool)
        if tool.name in self._tools:
            raise ToolError(f"There is a tool {tool.name!r} already: give this one another name.")
        self._tools[tool.name] = tool

    def get(self, name: str) -> Tool | ToolDefinition:
        """Raises ToolError if there is none of that name."""
        if name not in self._tools:
            raise ToolError(f"There is no tool {name!r}: {did_you_mean(name, self._tools)}")
        return self._tools[name]

    def joined(self, tools: Iterable[Tool]) -> ToolRegistry:
        """These tools and others, from the same sources; one that has the name of another is left out."""
        joined = ToolRegistry(sources=self._sources)
        joined._tools = {**{tool.name: tool for tool in tools}, **self._tools}
        return joined

    def led_by(self, definitions: Iterable[ToolDefinition]) -> ToolRegistry:
        """These tools behind others that run elsewhere; one of the same name gives way to them."""
        led = ToolRegistry(sources=self._sources)
        led._tools = {each.name: each for each in definitions}
        led._tools |= {name: tool for name, tool in self._tools.items() if name not in led._tools}
        return led

    def definitions(self) -> tuple[ToolDefinition, ...]:
        """The tools that were added, as the model is told of them."""
        return tuple(map(_definition, self._tools.values()))

    async def offered(self, message: str) -> Offered:
        """All tools for a message. Of two with the same name the first is offered, and a warning says so."""
        found, warnings = dict(self._tools), list[str]()
        # Side by side: who looks at the same files at the same moment shares the look.
        offers = await asyncio.gather(*(source.tools(message) for source in self._sources))
        for source, offer in zip(self._sources, offers, strict=True):
            for tool in offer:
                if tool.name in found:
                    warnings.append(
                        f"The tool {tool.name!r} of {tool.source} is left out: the name is taken."
                    )
                else:
                    found[tool.name] = tool
            warnings += source.warnings
        in_order = sorted(found.values(), key=lambda tool: not (isinstance(tool, Tool) and tool.leads))
        return Offered(
            definitions=tuple(map(_definition, in_order)),
            tools={name: tool for name, tool in found.items() if isinstance(tool, Tool)},
            warnings=tuple(warnings),
        )

    async def close(self) -> None:
        """End what the sources keep running."""
        for source in self._sources:
            await source.close()


def _definition(tool: Tool | ToolDefinition) -> ToolDefinition:
    return tool.definition if isinstance(tool, Tool) else tool
