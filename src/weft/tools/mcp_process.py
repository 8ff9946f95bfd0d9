"""One MCP server as a running process.

One task of its own enters and leaves the SDK's client, and ends when `stop` is called: the SDK ends its child
in steps, and whoever was cancelled twice while doing that would leave the child behind.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from contextvars import Context
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any, TextIO

from weft.errors import ToolError, missing_package
from weft.tools.mcp_meter import MAX_PARTS, METER, MessageMeter, limit_messages
from weft.tools.process import clean_environment, kill_marked, marked_environment
from weft.types.message import McpServer
from weft.types.secret import brief

if TYPE_CHECKING:
    from mcp import Client
    from mcp.types import CallToolResult, Tool

_log = logging.getLogger(__name__)

_MOST_PAGES = 50
_KEPT_BYTES = 4096
_LAST_WORDS_SECONDS = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class McpSettings:
    """How long an MCP server may take to answer and to start, stay unused, and rest after a failed start.

    Of its tools `max_tools` are offered, each with a description and a schema of `max_tool_bytes`. A message
    of it may have `max_message_bytes`, and `max_result_chars` of a result are used.
    """

    seconds: float = 60.0
    start_seconds: float = 60.0
    idle_seconds: float = 300.0
    retry_seconds: float = 30.0
    max_tools: int = 128
    max_tool_bytes: int = 8_192
    max_message_bytes: int = 4 * 1024 * 1024
    max_result_chars: int = 1_000_000


class McpProcess:
    """A server from its start to its end. `ready` gives its tools, or a ToolError that says what is wrong."""

    def __init__(self, server: McpServer, settings: McpSettings) -> None:
        self._server, self._settings = server, settings
        self._loop = asyncio.get_running_loop()
        self._client: Client | None = None
        self._sdk: ModuleType | None = None
        self._is_open: Callable[[], bool] = lambda: True
        self._calls, self._used = 0, self._loop.time()
        self._wake = asyncio.Event()
        self._stopped = self._retired = False
        self._stderr = _Tail()
        self._mark = secrets.token_hex(16)
        self._meter = MessageMeter(settings.max_message_bytes, self._kill)
        self.ready: asyncio.Future[tuple[Tool, ...]] = self._loop.create_future()
        # It outlives the turn that starts it, and what it logs is not of that turn.
        alone = Context()
        self.owner = asyncio.create_task(self._run(), name=f"mcp {server.name}", context=alone)
        self.owner.add_done_callback(self._ended, context=alone)

    @property
    def usable(self) -> bool:
        """Whether it can be asked, or will be able to once it is ready."""
        return not (self._stopped or self._retired) and self._is_open()

    def stop(self) -> None:
        """End it now, whatever is under way. `owner` is done when the process is gone."""
        if self._stopped:
            return
        self._stopped = True
        self._wake.set()
        if not self.ready.done():
            self.owner.cancel()

    def retire(self) -> None:
        """End it once the calls that are under way have ended."""
        self._retired = True
        self._wake.set()

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> CallToolResult:
        """Call a tool and return its text.

        Raises:
            ToolError: the server does not answer.
        """
        if self._client is None or self._sdk is None:
            raise ToolError(f"The MCP server {self._server.name!r} is not running: try again.")
        self._calls += 1
        try:
            return await self._client.call_tool(
                tool, dict(arguments), read_timeout_seconds=self._settings.seconds
            )
        except (OSError, ValueError, RuntimeError, self._sdk.MCPError) as error:
            raise await self._failed_call(tool, error) from error
        finally:
            self._calls -= 1
            self._used = self._loop.time()
            self._wake.set()

    async def _failed_call(self, tool: str, error: Exception) -> ToolError:
        name, code = self._server.name, getattr(error, "code", None)
        if self._sdk is not None and code == self._sdk.types.REQUEST_TIMEOUT:
            # Nobody can know whether it is slow or hangs: the next call gets a fresh one.
            self.retire()
            return ToolError(
                f"The tool {tool!r} of the MCP server {name!r} did not answer within "
                f"{self._settings.seconds:g} seconds: try something smaller, or raise `mcp.seconds`."
            )
        if self._meter.is_over:
            self.retire()
            return ToolError(
                f"The MCP server {name!r} sent a message of more than {self._settings.max_message_bytes} "
                f"bytes or {MAX_PARTS} parts during the call of {tool!r}: ask for less, or raise "
                "`mcp.max_message_bytes`."
            )
        if not self._is_open():
            self.retire()
            stderr = await self._last_words()
            return ToolError(
                f"The MCP server {name!r} ended during the call of {tool!r}{stderr}: "
                "it is started again when it is next used."
            )
        return ToolError(f"The tool {tool!r} of the MCP server {name!r} failed: {brief(str(error))}.")

    async def _run(self) -> None:
        try:
            sdk = self._sdk = await asyncio.to_thread(_load)
        except ModuleNotFoundError as error:
            self.ready.set_exception(ToolError(missing_package(error)))
            return
        try:
            await self._own(sdk)
        except (OSError, ValueError, RuntimeError, sdk.MCPError, ExceptionGroup) as error:
            if self.ready.done():
                _log.info("MCP server %r: %s", self._server.name, error)
            else:
                self.ready.set_exception(await self._failed_start(error))
        finally:
            # The SDK ends the server, but not what a server that ends by itself leaves behind.
            await asyncio.to_thread(kill_marked, self._mark)

    async def _own(self, sdk: ModuleType) -> None:
        async with AsyncExitStack() as stack:
            async with asyncio.timeout(self._settings.start_seconds):
                errlog = stack.enter_context(await self._stderr.open())
                client = sdk.Client(
                    self._transport(sdk, errlog), read_timeout_seconds=self._settings.start_seconds
                )
                self._client = await stack.enter_async_context(client)
                errlog.close()
                tools = await _listed(client, self._settings.max_tools)
            self._used = self._loop.time()
            self.ready.set_result(tools)
            await self._until_stopped()

    async def _until_stopped(self) -> None:
        """Wait until `stop`, or until the server was idle for a while."""
        while not self._stopped and not (self._retired and not self._calls):
            self._wake.clear()
            rest = self._used + self._settings.idle_seconds - self._loop.time()
            if rest <= 0 and not self._calls:
                break
            with suppress(TimeoutError):
                async with asyncio.timeout(None if self._calls else rest):
                    await self._wake.wait()
        self._stopped = True

    @asynccontextmanager
    async def _transport(self, sdk: ModuleType, errlog: TextIO) -> AsyncIterator[Any]:
        server = self._server
        params = sdk.StdioServerParameters(
            command=server.command,
            args=list(server.args),
            env=marked_environment(clean_environment(os.environ), self._mark),
        )
        METER.set(self._meter)
        async with sdk.stdio_client(params, errlog) as (read, write):
            # The sending side is the reader of the child's stdout: it is gone when the child is.
            self._is_open = lambda: read.statistics().open_send_streams > 0
            yield read, write

    async def _failed_start(self, error: Exception) -> ToolError:
        name, command = self._server.name, self._server.command
        if isinstance(error, FileNotFoundError):
            return ToolError(
                f"The MCP server {name!r} cannot be started, because there is no command {command!r}: "
                "install it, or correct the skill."
            )
        if isinstance(error, TimeoutError) or _has_code(error, self._sdk, "REQUEST_TIMEOUT"):
            return ToolError(
                f"The MCP server {name!r} was not ready within {self._settings.start_seconds:g} seconds: "
                f"start {command!r} by hand to see why, or raise `mcp.start_seconds`."
            )
        if self._meter.is_over:
            return ToolError(
                f"The MCP server {name!r} sent a message of more than {self._settings.max_message_bytes} "
                f"bytes or {MAX_PARTS} parts: let it list fewer tools, or raise `mcp.max_message_bytes`."
            )
        if isinstance(error, OSError | ValueError):
            return ToolError(
                f"The MCP server {name!r} cannot be started ({brief(str(error))}): correct the skill."
            )
        return ToolError(
            f"The MCP server {name!r} ended before it was ready{await self._last_words()}: "
            f"start {command!r} by hand to see why."
        )

    async def _last_words(self) -> str:
        """Return the end of the server's stderr, in brackets; output of a child that ended may still come."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_LAST_WORDS_SECONDS):
                await self._stderr.ended.wait()
        said = brief(self._stderr.text(), tail=True)
        return f" ({said})" if said else ""

    def _kill(self) -> None:
        """Kill a server that sends too much. Its output then ends, and with it the calls that wait."""
        self._retired = True
        self._killing = asyncio.create_task(asyncio.to_thread(kill_marked, self._mark))

    def _ended(self, owner: asyncio.Task[None]) -> None:
        self._stopped = True
        self._client = None
        self._stderr.close()
        if not owner.cancelled() and (error := owner.exception()) is not None:
            _log.error("the task of the MCP server %r failed", self._server.name, exc_info=error)
        if not self.ready.done():
            self.ready.set_exception(
                ToolError(f"The MCP server {self._server.name!r} was stopped: try again.")
            )
        self.ready.exception()  # whoever asked may be gone


class _Tail(asyncio.Protocol):
    """Keeps the end of what a child writes to stderr, which would otherwise land in the user's terminal."""

    def __init__(self) -> None:
        self._kept = b""
        self._pipe: asyncio.BaseTransport | None = None
        self.ended = asyncio.Event()

    async def open(self) -> TextIO:
        """Return a file for a child to write to; the starter of the child closes it."""
        reading, writing = os.pipe()
        loop = asyncio.get_running_loop()
        self._pipe, _ = await loop.connect_read_pipe(lambda: self, os.fdopen(reading, "rb", 0))
        return os.fdopen(writing, "w")

    def close(self) -> None:
        if self._pipe is not None:
            self._pipe.close()

    def data_received(self, data: bytes) -> None:
        self._kept = (self._kept + data)[-_KEPT_BYTES:]

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended.set()

    def text(self) -> str:
        return self._kept.decode("utf-8", "replace")


async def _listed(client: Client, most: int) -> tuple[Tool, ...]:
    """List the tools of a server, page by page, until there are more than will be offered."""
    tools: list[Tool] = []
    cursor: str | None = None
    for _ in range(_MOST_PAGES):
        page = await client.list_tools(cursor=cursor)
        tools += page.tools
        cursor = page.next_cursor
        if not cursor or len(tools) > most:
            break
    return tuple(tools)


def _has_code(error: BaseException, sdk: ModuleType | None, name: str) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return any(_has_code(inner, sdk, name) for inner in error.exceptions)
    return sdk is not None and getattr(error, "code", None) == getattr(sdk.types, name)


def _load() -> ModuleType:
    import mcp  # noqa: PLC0415 - takes more than a second, which only who uses a server pays

    logger = logging.getLogger("mcp.client")
    if logger.level == logging.NOTSET:
        # The SDK logs a traceback for each stray line that a server prints; what matters becomes an error.
        logger.setLevel(logging.CRITICAL)
    limit_messages(sys.modules["mcp.client.stdio"])
    return mcp
