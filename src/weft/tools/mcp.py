"""Tools of MCP servers: skills declare them, a message calls for them, they run while they are used."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from weft.errors import ToolError
from weft.tools.base import FrozenTools, Tool
from weft.tools.mcp_process import McpProcess, McpSettings
from weft.types.escape import one_line
from weft.types.message import McpServer, ToolDefinition
from weft.types.request import Caller
from weft.types.rules import ToolRule
from weft.workspace.skills import Skills

if TYPE_CHECKING:
    from mcp import types

__all__ = ["McpSettings", "McpTools", "tool_name"]

_log = logging.getLogger(__name__)
_NO_TOOLS = "An MCP server has no tools to offer: %s"

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")
_LONGEST, _MARK = 64, 10
_NAMED = 5


class McpTools:
    """The tools of the MCP servers that a message calls for.

    A server is started when its tools must be listed for the first time, or one is called. It is kept for the
    messages that follow, stopped when nobody has used it for a while, and started again when it has died. One
    that cannot be started costs its own tools and a warning, never the turn.
    """

    def __init__(self, skills: Callable[[], Awaitable[Skills]], settings: McpSettings | None = None) -> None:
        self._skills = skills
        self._settings = settings or McpSettings()
        self._servers: dict[McpServer, _Server] = {}
        self._running: set[McpProcess] = set()
        self._closed = False
        self.warnings: tuple[str, ...] = ()
        self.rules: tuple[ToolRule, ...] = ()

    async def tools(self, message: str) -> Sequence[Tool]:
        """Return the tools of the servers whose skills a message triggers, in the order of the skills."""
        if self._closed:
            return ()
        skills = await self._skills()
        self._forget(set(self._servers) - {server for skill in skills.usable for server in skill.mcp_servers})
        servers = [self._server(server) for server in skills.active_servers(message)]
        offered = await asyncio.gather(*(server.offered() for server in servers))
        self.warnings = tuple(warning for server in servers for warning in server.warnings)
        return [tool for tools in offered for tool in tools]

    async def keep(self, message: str, frozen: FrozenTools) -> Sequence[Tool]:
        """Return the tools that the epoch has frozen and that the message alone does not bring.

        No server is started for them, unless only the servers can say whose tool it is. A tool of a server
        that did not run yet stands for the one that a call loads.
        """
        skills = await self._skills()
        active = skills.active_servers(message)
        offering = {server.name for server in active if self._server(server).tools}
        declared = dict.fromkeys(server for skill in skills.usable for server in skill.mcp_servers)
        idle = [server for server in declared if server.name not in offering]
        if self._closed or not idle:
            return ()
        kept = [await self._kept(idle, definition) for definition in (await frozen()).values()]
        return [tool for tool in kept if tool is not None]

    async def _kept(self, idle: Sequence[McpServer], definition: ToolDefinition) -> Tool | None:
        """Return the tool of an idle server that an epoch has frozen; None if it is no server's."""
        claims = {server: _claim(server.name, definition.name) for server in idle}
        best = max(claims.values())
        owners = [self._server(server) for server in idle if best and claims[server] == best]
        unknown = [server for server in owners if server.tools is None]
        if len(unknown) == 1 and len(owners) == 1:
            return unknown[0].later(definition)
        found = _find(owners, definition)
        if found is None and unknown:
            await asyncio.gather(*(server.offered() for server in unknown))
            found = _find(owners, definition)
        return found

    async def close(self) -> None:
        """Stop all servers, and wait until they are gone."""
        self._closed = True
        self._servers.clear()
        for process in self._running:
            process.stop()
        if self._running:
            # Who is cancelled while waiting must not cancel those who end the children.
            await asyncio.shield(asyncio.wait([process.owner for process in self._running]))

    def _server(self, server: McpServer) -> _Server:
        if server not in self._servers:
            self._servers[server] = _Server(server, self._settings, self._start)
        return self._servers[server]

    def _start(self, server: McpServer) -> McpProcess:
        if self._closed:
            raise ToolError(f"The MCP server {server.name!r} was stopped: connect again to use it.")
        process = McpProcess(server, self._settings)
        self._running.add(process)
        process.owner.add_done_callback(lambda _: self._running.discard(process))
        return process

    def _forget(self, servers: set[McpServer]) -> None:
        for server in servers:
            self._servers.pop(server).retire()


class _Server:
    """What is known of one server, whether it runs or not."""

    def __init__(
        self, server: McpServer, settings: McpSettings, start: Callable[[McpServer], McpProcess]
    ) -> None:
        self._server, self._settings, self._start = server, settings, start
        self._process: McpProcess | None = None
        self._offered: tuple[Tool, ...] | None = None
        self._left_out: tuple[str, ...] = ()
        self._failed: tuple[float, str] | None = None

    async def offered(self) -> tuple[Tool, ...]:
        """Return the server's tools; none while it cannot be started."""
        if self._offered is None:
            try:
                await self._ready()
            except ToolError as error:
                _log.info(_NO_TOOLS, error, extra={"server": self._server.name})
        return self._offered or ()

    @property
    def tools(self) -> tuple[Tool, ...] | None:
        """The server's tools, if it was started already."""
        return self._offered

    def later(self, definition: ToolDefinition) -> Tool:
        """Return a tool that stands for one of the server's until a call starts the server."""

        async def load() -> Tool:
            await self._ready()
            found = _find([self], definition)
            if found is None:
                raise ToolError(f"The MCP server {self._server.name!r} no longer has {definition.name!r}.")
            return found

        async def run(arguments: Mapping[str, Any], caller: Caller) -> str:
            return await (await load()).run(arguments, caller)

        source = f"the MCP server {self._server.name!r}"
        return Tool(definition=definition, run=run, source=source, origin="mcp", kind="servers", load=load)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Why it has no tools to offer, or which of them are left out and why."""
        return (self._failed[1],) if self._failed and self._offered is None else self._left_out

    def retire(self) -> None:
        if self._process is not None:
            self._process.retire()

    async def _ready(self) -> McpProcess:
        """Return the running process.

        Raises:
            ToolError: it cannot be started, or could not a moment ago.
        """
        if self._process is None or not self._process.usable:
            if self._failed and time.monotonic() - self._failed[0] < self._settings.retry_seconds:
                raise ToolError(self._failed[1])
            self.retire()
            self._process = self._start(self._server)
        process = self._process
        try:
            listed = await asyncio.shield(process.ready)
        except ToolError as error:
            if process is self._process:
                self._process, self._failed = None, (time.monotonic(), str(error))
                _log.warning(_NO_TOOLS, error, extra={"server": self._server.name})
            raise ToolError(str(error)) from error
        welcome, self._left_out = admitted(self._server.name, listed, self._settings)
        self._failed, self._offered = None, tuple(map(self._tool, welcome))
        return process

    def _tool(self, listed: types.Tool) -> Tool:
        async def run(arguments: Mapping[str, Any], caller: Caller) -> str:
            process = await self._ready()
            result = await process.call(listed.name, arguments)
            return _text(result, listed.name, self._settings.max_result_chars)

        definition = ToolDefinition(
            name=tool_name(self._server.name, listed.name),
            description=listed.description,
            parameters=listed.input_schema,
        )
        return Tool(
            definition=definition,
            run=run,
            source=f"the MCP server {self._server.name!r}",
            origin="mcp",
            kind="read" if _only_reads(listed) else "servers",
        )


def _only_reads(listed: types.Tool) -> bool:
    """Return whether a server says of a tool that it changes nothing and reaches nobody else."""
    hints = listed.annotations
    return hints is not None and hints.read_only_hint is True and hints.open_world_hint is False


def tool_name(server: str, tool: str) -> str:
    """Return the name of a server's tool here: `mcp__SERVER__TOOL`.

    Where that is no name for a vendor, or could be read as that of another server's tool, a mark that
    stands for exactly these two names ends it.
    """
    name = f"mcp__{server}__{tool}"
    if _NAME.fullmatch(name) and "__" not in server and not server.endswith("_"):
        return name
    mark = sha256(f"{server}\0{tool}".encode("utf-8", "surrogatepass")).hexdigest()[:_MARK]
    return f"{_NOT_IN_NAMES.sub('_', name)[: _LONGEST - _MARK - 1]}_{mark}"


def _claim(server: str, name: str) -> int:
    """Return whether a tool's name may be of a server's tool (1), or is so beyond doubt (2)."""
    start = _NOT_IN_NAMES.sub("_", f"mcp__{server}__")[: _LONGEST - _MARK - 1]
    if not name.startswith(start):
        return 0
    unmarked = name[len(start) : -_MARK - 1]
    return 2 if unmarked and tool_name(server, unmarked) == name else 1


def _find(servers: Sequence[_Server], definition: ToolDefinition) -> Tool | None:
    """Return the tool of this name, of several the one that is described in the same way."""
    named = [tool for server in servers for tool in server.tools or () if tool.name == definition.name]
    return next((tool for tool in named if tool.definition == definition), named[0] if named else None)


def admitted(
    server: str, listed: Sequence[types.Tool], settings: McpSettings
) -> tuple[list[types.Tool], tuple[str, ...]]:
    """Return the tools of a server that are within the limits, and a sentence about those that are not."""
    welcome, rest = listed[: settings.max_tools], listed[settings.max_tools :]
    large = [tool for tool in welcome if _bytes(tool) > settings.max_tool_bytes]
    warnings: list[str] = []
    if rest:
        warnings.append(
            f"The MCP server {server!r} offers more than {settings.max_tools} tools: {_names(rest)} and all "
            "behind are left out; let it offer fewer, or raise `mcp.max_tools`."
        )
    if large:
        warnings.append(
            f"The MCP server {server!r} describes {_names(large)} in more than {settings.max_tool_bytes} "
            "bytes: left out; shorten the description and the schema, or raise `mcp.max_tool_bytes`."
        )
    return [tool for tool in welcome if tool not in large], tuple(warnings)


def _bytes(tool: types.Tool) -> int:
    """Return the size of a tool's description or of its schema, whichever is larger."""
    schema = json.dumps(tool.input_schema, ensure_ascii=False)
    return max(len(text.encode("utf-8", "replace")) for text in (tool.description or "", schema))


def _names(tools: Sequence[types.Tool]) -> str:
    names = [repr(one_line(tool.name[:_LONGEST])) for tool in tools[:_NAMED]]
    others = len(tools) - len(names)
    return ", ".join(names) + (f" and {others} more" if others else "")


def _text(result: types.CallToolResult, tool: str, limit: int) -> str:
    """Return what the model reads: text as it is, anything else described in brackets, up to a limit.

    Raises:
        ToolError: the tool says that it failed.
    """
    parts = [_part(part) for part in result.content]
    if not parts and result.structured_content is not None:
        parts = [json.dumps(result.structured_content, ensure_ascii=False)]
    text = "\n".join(parts)
    if result.is_error:
        raise ToolError(text[:limit] or f"The tool {tool!r} failed and did not say why.")
    if len(text) > limit:
        return f"{text[:limit]}\n[Cut: the server sent {len(text)} characters, and {limit} are used.]"
    return text


def _part(part: types.ContentBlock) -> str:
    if part.type == "text":
        return part.text
    if part.type == "resource_link":
        return f"[link: {part.name}, {part.uri}]"
    if part.type == "resource":
        about = f"[resource: {part.resource.uri}]"
        text = getattr(part.resource, "text", None)
        return about if text is None else f"{about}\n{text}"
    return f"[{part.type}: {part.mime_type}, about {len(part.data) * 3 // 4:,} bytes]"
