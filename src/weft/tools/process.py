"""Running a program so that it cannot do more than answer: no secrets, no input, no end beyond its time.

Everything that a call starts is gone when the call is over, however it ends. The program leads a process
group of its own, and all that descends from it carries a mark in its environment, by which also those are
found that left the group. A process that leaves the group *and* wipes its environment is not found.
"""

from __future__ import annotations

import asyncio
import codecs
import errno
import os
import secrets
import shutil
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from weft.errors import ToolError
from weft.workspace.files import inside

MARK = "WEFT_CALL"
"""The variable whose value all processes of one call have in common."""
PASSED_ON = frozenset(
    "HOME LANG LANGUAGE LOGNAME SSL_CERT_DIR SSL_CERT_FILE TMPDIR TZ USER "
    "XDG_CACHE_HOME XDG_CONFIG_HOME XDG_DATA_HOME XDG_STATE_HOME".split()
)
"""What a program may know besides the PATH and LC_*. Keys and tokens have other names, whatever those are."""
_GRACE_SECONDS = 1.0
"""How long a program may take to end itself when it is asked to."""
_GONE_SECONDS = 2.0
"""How long to wait for what was killed; only a process stuck in the kernel takes longer."""
_SWEEPS, _SWEEP_SECONDS = 50, 0.005


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionSettings:
    """What a call may cost, and whether scripts of a skill may run to resolve a value."""

    seconds: float = 60.0
    max_output_bytes: int = 1_000_000
    allow_scripts: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A program by its path, its arguments, and where it runs."""

    program: str
    args: tuple[str, ...] = ()
    directory: str
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """How a program ended, and what it wrote. Without a code it was stopped at its time limit."""

    code: int | None
    stdout: str
    stderr: str


def clean_environment(environ: Mapping[str, str], *, workspace: str | None = None) -> dict[str, str]:
    """The few variables that a program needs.

    Of the PATH only absolute folders outside the workspace are left: what lies in the workspace may have
    been written by the model, and must not take the name of a listed program.
    """
    passed = {name: value for name, value in environ.items() if name in PASSED_ON or name.startswith("LC_")}
    folders = environ.get("PATH", os.defpath).split(os.pathsep)
    kept = [folder for folder in folders if os.path.isabs(folder) and not _is_below(workspace, folder)]
    return passed | {"PATH": os.pathsep.join(kept)}


def _is_below(workspace: str | None, folder: str) -> bool:
    if workspace is None:
        return False
    return inside(workspace, folder) is not None or os.path.realpath(folder) == os.path.realpath(workspace)


def find_program(name: str, environment: Mapping[str, str]) -> str:
    """The path of a program.

    Raises:
        ToolError: it is not in a folder of the PATH.
    """
    found = shutil.which(name, path=environment["PATH"])
    if found is None:
        raise ToolError(f"The program {name!r} is not on the PATH: install it.")
    return found


async def run_process(command: Command, settings: ExecutionSettings) -> Finished:
    """Run a program to its end, or to the end of its time. When the caller is cancelled, it is killed.

    Raises:
        ToolError: the program could not be started.
    """
    stop = asyncio.Event()
    work = asyncio.ensure_future(_run(command, settings, stop))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        # The work is told to stop and is waited for, not cancelled: it has processes to bury. A second
        # cancellation ends the waiting, not the burial.
        stop.set()
        await asyncio.shield(asyncio.wait([work]))
        raise


async def _run(command: Command, settings: ExecutionSettings, stop: asyncio.Event) -> Finished:
    mark = secrets.token_hex(16)
    output = _Output(settings.max_output_bytes)
    transport = await _start(command, mark, output)
    pid = transport.get_pid()
    try:
        ended = await _first(output.exited, stop, seconds=settings.seconds)
        if not output.exited.is_set():
            await asyncio.to_thread(_signal_all, pid, mark, signal.SIGTERM)
            await _first(output.exited, seconds=_GRACE_SECONDS)
        # Also after an ordinary end: what was left behind would outlive the time limit, and as long as it
        # holds the pipe the output has no end.
        await asyncio.to_thread(_kill_all, pid, mark)
        await _first(output.exited, seconds=_GONE_SECONDS)
        await _first(output.closed, seconds=_GONE_SECONDS)
    finally:
        # Here without an end only if the loop itself is being shut down.
        if not output.exited.is_set():
            _kill_all(pid, mark)
        transport.close()
    code = transport.get_returncode() if ended else None
    return Finished(code=code, stdout=output.text(1), stderr=output.text(2))


async def _start(command: Command, mark: str, output: _Output) -> asyncio.SubprocessTransport:
    loop = asyncio.get_running_loop()
    try:
        transport, _ = await loop.subprocess_exec(
            lambda: output,
            os.fsencode(command.program),
            *(word.encode() for word in command.args),
            stdin=asyncio.subprocess.DEVNULL,
            cwd=command.directory,
            env={**command.environment, MARK: mark},
            start_new_session=True,
        )
    except OSError as error:
        raise _not_started(command, error) from error
    return transport


def _not_started(command: Command, error: OSError) -> ToolError:
    name = os.path.basename(command.program)
    if error.errno == errno.E2BIG:
        return ToolError(f"{name} could not be started: its arguments are too long.")
    if not os.path.isdir(command.directory):
        return ToolError(f"{name} could not be started: there is no folder {command.directory}.")
    return ToolError(f"{name} could not be started ({error.strerror}): check that it runs in a terminal.")


async def _first(*events: asyncio.Event, seconds: float) -> bool:
    """Wait until the first of the events; whether that one is set."""
    waits = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
    return events[0].is_set()


class _Output(asyncio.SubprocessProtocol):
    """What a program writes, up to a limit for each stream; the rest is read and thrown away."""

    def __init__(self, limit: int) -> None:
        self.exited, self.closed = asyncio.Event(), asyncio.Event()
        self._limit = limit
        self._kept = {1: bytearray(), 2: bytearray()}
        self._cut: set[int] = set()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        kept = self._kept[fd]
        room = self._limit - len(kept)
        kept += data[:room]
        if len(data) > room:
            self._cut.add(fd)

    def process_exited(self) -> None:
        self.exited.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed.set()

    def text(self, fd: int) -> str:
        is_cut = fd in self._cut
        text = codecs.getincrementaldecoder("utf-8")("replace").decode(self._kept[fd], not is_cut)
        return f"{text}\n[Output cut: it was longer than {self._limit} bytes.]" if is_cut else text


def _kill_all(pid: int, mark: str) -> None:
    """Kill until nothing is left, since a process may start another while its siblings are looked for."""
    for _ in range(_SWEEPS):
        if not _signal_all(pid, mark, signal.SIGKILL):
            break
        time.sleep(_SWEEP_SECONDS)


def _signal_all(pid: int, mark: str, number: signal.Signals) -> int:
    """Send a signal to the group and to all that carry the mark, and say to how many of the latter."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)
    marked = _marked(mark)
    for found in marked:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(found, number)
    return len(marked)


def _marked(mark: str) -> list[int]:
    """The processes that carry a mark, where the system shows environments (Linux). A dead one has none."""
    needle = f"{MARK}={mark}".encode()
    try:
        names = os.listdir("/proc")
    except OSError:
        return []
    return [int(name) for name in names if name.isdigit() and needle in _environment_of(name)]


def _environment_of(pid: str) -> bytes:
    try:
        with open(f"/proc/{pid}/environ", "rb") as opened:
            return opened.read()
    except OSError:
        return b""
