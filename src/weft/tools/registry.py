"""The tools of an assistant, by name, from wherever they come."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from weft.errors import ToolError, did_you_mean
from weft.tools.base import FrozenTools, Tool, ToolSource
from weft.tools.function import tool_from
from weft.types.message import ToolDefinition
from weft.types.rules import ToolRule


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """The tools of one turn: their definitions for the model, those that run here, and the rules for them."""

    definitions: tuple[ToolDefinition, ...] = ()
    tools: Mapping[str, Tool] = field(default_factory=dict)
    rules: tuple[ToolRule, ...] = ()
    warnings: tuple[str, ...] = ()


class ToolRegistry:
    """Tools in the order in which they were added, each with a name of its own.

    A function becomes a tool by its signature and its docstring. A plain definition is declared to the model
    but runs elsewhere: its calls come back to the caller. Sources are asked with every message; their tools
    stand behind the added ones.
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
        """Add a tool.

        Raises:
            ToolError: another tool has that name, or a function cannot be one.
        """
        if not isinstance(tool, Tool | ToolDefinition):
            tool = tool_from(tool)
        if tool.name in self._tools:
            raise ToolError(f"There is a tool {tool.name!r} already: give this one another name.")
        self._tools[tool.name] = tool

    def get(self, name: str) -> Tool | ToolDefinition:
        """Return a tool by its name.

        Raises:
            ToolError: no tool has that name.
        """
        if name not in self._tools:
            raise ToolError(f"There is no tool {name!r}: {did_you_mean(name, self._tools)}")
        return self._tools[name]

    def joined(self, tools: Iterable[Tool]) -> ToolRegistry:
        """Return a registry with further tools; one that has the name of an added tool is left out."""
        joined = ToolRegistry(sources=self._sources)
        joined._tools = {**{tool.name: tool for tool in tools}, **self._tools}
        return joined

    def led_by(self, definitions: Iterable[ToolDefinition]) -> ToolRegistry:
        """Return a registry with the app's tools first; one of ours with the same name gives way."""
        led = ToolRegistry(sources=self._sources)
        led._tools = {each.name: each for each in definitions}
        led._tools |= {name: tool for name, tool in self._tools.items() if name not in led._tools}
        return led

    def definitions(self) -> tuple[ToolDefinition, ...]:
        """Return the definitions of the added tools."""
        return tuple(map(_definition, self._tools.values()))

    async def offered(self, message: str, frozen: FrozenTools | None = None) -> Offered:
        """Return all tools for a message. Of two with one name the first is offered, with a warning.

        In an epoch the tools stay those that it froze: `frozen` returns them, and a source that would offer
        one of them for other messages only offers it all the same.
        """
        by_name, warnings = dict(self._tools), list[str]()
        # Concurrently: sources that read the same files share the read.
        offers = await asyncio.gather(*(_tools_of(source, message, frozen) for source in self._sources))
        for source, offer in zip(self._sources, offers, strict=True):
            for tool in offer:
                if tool.name in by_name:
                    warnings.append(
                        f"The tool {tool.name!r} of {tool.source} is left out: the name is taken."
                    )
                else:
                    by_name[tool.name] = tool
            warnings += source.warnings
        in_order = sorted(by_name.values(), key=lambda tool: not (isinstance(tool, Tool) and tool.leads))
        return Offered(
            definitions=tuple(map(_definition, in_order)),
            tools={name: tool for name, tool in by_name.items() if isinstance(tool, Tool)},
            rules=tuple(rule for source in self._sources for rule in source.rules),
            warnings=tuple(warnings),
        )

    async def close(self) -> None:
        """Close the sources."""
        for source in self._sources:
            await source.close()


async def _tools_of(source: ToolSource, message: str, frozen: FrozenTools | None) -> Sequence[Tool]:
    tools = await source.tools(message)
    keep = getattr(source, "keep", None)
    return tools if frozen is None or keep is None else [*tools, *await keep(message, frozen)]


def _definition(tool: Tool | ToolDefinition) -> ToolDefinition:
    return tool.definition if isinstance(tool, Tool) else tool
