"""Claude Code as a provider: the program `claude` answers, with its own login and its own tools.

It runs in its own process group, which is killed as a whole on timeout, cancellation, error and close.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from weft.errors import ProviderError
from weft.providers.base import collected
from weft.providers.claude_settings import lent_servers
from weft.types.context import Context
from weft.types.limits import ModelInfo
from weft.types.reply import Done, Event, Reply, TextDelta
from weft.types.secret import brief
from weft.wire.claude_code import Assembler, Invocation, to_invocation
from weft.wire.vendors import VENDORS

_NESTING = frozenset({"CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT"})
"""Variables of a session of Claude Code. `claude` does not start inside of another session."""
_CHUNK = 65_536
_STDERR_BYTES = 4096
_GRACE_SECONDS = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaudeCodeSettings:
    """The program, its limits of time and money, and the folder it works in."""

    command: str = "claude"
    seconds: float = 600.0
    max_budget_usd: float | None = None
    working_dir: str | None = None


class ClaudeCode:
    """A provider that starts one process of Claude Code for each request."""

    def __init__(self, settings: ClaudeCodeSettings, info: ModelInfo) -> None:
        self._settings = settings
        self.info = replace(info, takes_pictures=False)
        self._running: set[_Child] = set()
        self._closed = False

    async def complete(self, context: Context) -> Reply:
        return await collected(self.stream(context))

    async def close(self) -> None:
        self._closed = True
        for child in tuple(self._running):
            await child.end()

    async def stream(self, context: Context) -> AsyncGenerator[Event]:
        """Yield the answer as it comes.

        Raises:
            ProviderError: `claude` is not installed, failed, took too long, or broke off.
        """
        model, budget = context.model or self.info.id, self._settings.max_budget_usd
        call = to_invocation(context, model=model, max_budget_usd=budget)
        command, folder = self._place()
        deadline = asyncio.get_running_loop().time() + self._settings.seconds
        assembler = Assembler()
        with lent_servers(folder, call.servers):
            async with self._child([command, *call.args], folder, call) as child:
                while not assembler.done and (lines := await self._read(child, deadline)):
                    for line in lines:
                        if text := assembler.feed(line):
                            yield TextDelta(text)
                code = await child.exit_code()
        if not assembler.done:
            raise self._broke_off(code, child.stderr)
        yield Done(assembler.reply())

    def _place(self) -> tuple[str, Path]:
        """Find the program and the folder it works in."""
        if self._closed:
            raise ProviderError("Claude Code was closed: connect again to ask it.")
        folder = Path(self._settings.working_dir or ".").expanduser().absolute()
        if not folder.is_dir():
            raise ProviderError(
                f"Claude Code cannot work in {str(folder)!r}: set `claude_code.working_dir` to a folder."
            )
        command = shutil.which(self._settings.command)
        if command is None:
            raise ProviderError(
                f"There is no command {self._settings.command!r}: install Claude Code with "
                "`npm install -g @anthropic-ai/claude-code`, or choose another provider."
            )
        return command, folder

    @asynccontextmanager
    async def _child(self, command: list[str], folder: Path, call: Invocation) -> AsyncIterator[_Child]:
        try:
            starting = asyncio.create_task(
                asyncio.create_subprocess_exec(
                    *command,
                    cwd=folder,
                    env=_environment(os.environ),
                    stdin=asyncio.subprocess.DEVNULL if call.stdin is None else asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.PIPE,
                    start_new_session=True,
                )
            )
            process = await _despite_cancel(starting)
        except (OSError, ValueError) as error:
            raise ProviderError(f"Claude Code cannot be started ({error}): check `{command[0]}`.") from error
        child = _Child(process, call.stdin)
        self._running.add(child)
        try:
            yield child
        finally:
            self._running.discard(child)
            await child.end()

    async def _read(self, child: _Child, deadline: float) -> list[bytes]:
        try:
            async with asyncio.timeout_at(deadline):
                return await child.lines()
        except TimeoutError:
            raise ProviderError(
                f"Claude Code did not finish within {self._settings.seconds:g} seconds: "
                "ask for less, or raise `claude_code.seconds`."
            ) from None

    def _broke_off(self, code: int | None, stderr: str) -> ProviderError:
        if self._closed:
            return ProviderError("Claude Code was closed before it had answered: connect again to ask it.")
        exit_code = f" (code {code})" if code else ""
        text = brief(stderr, tail=True)
        reason = f", saying: {text}" if text else ""
        return ProviderError(
            f"The answer of Claude Code broke off before its end{exit_code}{reason}: "
            "ask again, or start `claude` in a terminal to see more."
        )


async def _despite_cancel(starting: asyncio.Task[asyncio.subprocess.Process]) -> asyncio.subprocess.Process:
    """Wait for a process to start. If the caller is cancelled meanwhile, its whole group is killed.

    asyncio itself would kill the process alone, and leave what it has started.
    """
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        await _Child(await starting, None).end()
        raise


class _Child:
    """A running `claude` with its process group."""

    def __init__(self, process: asyncio.subprocess.Process, prompt: bytes | None) -> None:
        self._process = process
        self._rest = b""
        self._stderr = b""
        self._tasks = [asyncio.create_task(self._listen())]
        if prompt is not None:
            self._tasks.append(asyncio.create_task(self._write_prompt(prompt)))

    @property
    def stderr(self) -> str:
        """Return the end of its standard error."""
        return self._stderr.decode("utf-8", "replace")

    async def lines(self) -> list[bytes]:
        """Read the next lines. At the end there are none. The last line may lack its newline."""
        lines: list[bytes] = []
        while not lines:
            chunk = await self._process.stdout.read(_CHUNK) if self._process.stdout else b""
            if not chunk:
                lines, self._rest = [self._rest] if self._rest else [], b""
                break
            *lines, self._rest = (self._rest + chunk).split(b"\n")
        return lines

    async def exit_code(self) -> int | None:
        """Wait a moment for the process to end by itself, and return its exit code."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_GRACE_SECONDS):
                await self._process.wait()
                await asyncio.wait(self._tasks)
        return self._process.returncode

    async def end(self) -> None:
        """Kill the process group and wait until it is gone. The kill itself cannot be interrupted."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(self._tasks)
        with suppress(TimeoutError):
            # A process that left the group may still hold the pipes. We do not wait for it.
            async with asyncio.timeout(_GRACE_SECONDS):
                await self._process.wait()

    async def _listen(self) -> None:
        while self._process.stderr and (chunk := await self._process.stderr.read(_CHUNK)):
            self._stderr = (self._stderr + chunk)[-_STDERR_BYTES:]

    async def _write_prompt(self, prompt: bytes) -> None:
        if stdin := self._process.stdin:
            with suppress(ConnectionError):  # it ended before it read everything; its exit code says why
                stdin.write(prompt)
                await stdin.drain()
            stdin.close()


def _environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for `claude`: what its own login needs, without keys of other vendors."""
    keys = {vendor.key_variable for vendor in VENDORS.values() if vendor.name != "anthropic"}
    return {name: value for name, value in environ.items() if name not in _NESTING | keys | {"WEFT_TOKEN"}}
