"""Execution of external programs, without secrets or input, and with a time limit.

Everything that a call starts is gone when the call is over, however it ends. The program leads a process
group, and all its descendants carry a mark in their environment, by which those that left the group are
found. Only a process that leaves the group *and* wipes its environment escapes; that needs /proc (Linux).
"""

from __future__ import annotations

import asyncio
import codecs
import errno
import os
import secrets
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from weft.errors import ToolError
from weft.workspace.files import inside

MARK = "WEFT_CALL"
"""The variable with the mark of a call; a call within a call carries both marks."""
PASSED_ON = frozenset(
    "HOME LANG LANGUAGE LOGNAME SSL_CERT_DIR SSL_CERT_FILE TMPDIR TZ USER "
    "XDG_CACHE_HOME XDG_CONFIG_HOME XDG_DATA_HOME XDG_STATE_HOME".split()
)
"""The variables that a program gets besides PATH and LC_*. Keys and tokens have other names."""
_GRACE_SECONDS = 1.0
"""How long a program may take to end after SIGTERM."""
_GONE_SECONDS = 2.0
"""How long to wait for a killed process; only one stuck in the kernel takes longer."""
_CHUNK_BYTES = 65_536
_SWEEPS, _SWEEP_SECONDS = 50, 0.005


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionSettings:
    """Limits of a call, and whether scripts of a skill may run to resolve a value."""

    seconds: float = 60.0
    max_output_bytes: int = 1_000_000
    allow_scripts: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A program by its path, its arguments, and its folder."""

    program: str
    args: tuple[str, ...] = ()
    directory: str
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """The exit code and the output of a program. Without a code it reached its time limit."""

    code: int | None
    stdout: str
    stderr: str


def clean_environment(environ: Mapping[str, str], *, workspace: str | None = None) -> dict[str, str]:
    """Return the few variables that a program needs.

    Of the PATH only absolute folders outside the workspace are left: what lies in the workspace may have
    been written by the model, and must not take the name of a listed program.
    """
    passed = {name: value for name, value in environ.items() if name in PASSED_ON or name.startswith("LC_")}
    folders = environ.get("PATH", os.defpath).split(os.pathsep)
    absolute = [folder for folder in folders if os.path.isabs(folder) and not _is_below(workspace, folder)]
    outer = {MARK: environ[MARK]} if MARK in environ else {}
    return passed | outer | {"PATH": os.pathsep.join(absolute)}


def _is_below(workspace: str | None, folder: str) -> bool:
    if workspace is None:
        return False
    return inside(workspace, folder) is not None or os.path.realpath(folder) == os.path.realpath(workspace)


def find_program(name: str, environment: Mapping[str, str]) -> str:
    """Return the path of a program.

    Raises:
        ToolError: it is not in a folder of the PATH.
    """
    path = shutil.which(name, path=environment["PATH"])
    if path is None:
        raise ToolError(f"The program {name!r} is not on the PATH: install it.")
    return path


async def run_process(command: Command, settings: ExecutionSettings) -> Finished:
    """Run a program to its end or its time limit. Cancelling the caller kills it.

    Raises:
        ToolError: the program could not be started.
    """
    stop = asyncio.Event()
    work = asyncio.ensure_future(_run(command, settings, stop))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        # The work is stopped and awaited, not cancelled: it has processes to reap. A second cancellation ends
        # the waiting, not the reaping.
        stop.set()
        await asyncio.shield(asyncio.wait([work]))
        raise


async def _run(command: Command, settings: ExecutionSettings, stop: asyncio.Event) -> Finished:
    mark = secrets.token_hex(16)
    child = _Child(_start(command, mark), settings.max_output_bytes)
    try:
        ended = await _first(child.exited, stop, seconds=settings.seconds)
        if not child.exited.is_set():
            await asyncio.to_thread(_signal_all, child.pid, mark, signal.SIGTERM)
            await _first(child.exited, seconds=_GRACE_SECONDS)
        # Also after an ordinary end: a process left behind would outlive the time limit, and as long as it
        # holds the pipe the output has no end.
        await asyncio.to_thread(_kill_all, child.pid, mark)
        await _first(child.exited, seconds=_GONE_SECONDS)
        await _first(child.closed, seconds=_GONE_SECONDS)
    finally:
        # Here without an end only if the loop itself is being shut down.
        if not child.exited.is_set():
            _kill_all(child.pid, mark)
        child.release()
    return Finished(code=child.code if ended else None, stdout=child.text(1), stderr=child.text(2))


def _start(command: Command, mark: str) -> subprocess.Popen[bytes]:
    # Not asyncio's subprocess: if that is cancelled before the pipes are connected (3.11: for example by the
    # end of the loop), it waits for them for ever, and does not say which process it started.
    try:
        return subprocess.Popen(  # noqa: S603 - the program is on the allowlist, and there is no shell
            [os.fsencode(command.program), *(word.encode() for word in command.args)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            cwd=command.directory,
            env=marked_environment(command.environment, mark),
            start_new_session=True,
        )
    except OSError as error:
        raise _not_started(command, error) from error


def _not_started(command: Command, error: OSError) -> ToolError:
    name = os.path.basename(command.program)
    if error.errno == errno.E2BIG:
        return ToolError(f"{name} could not be started: its arguments are too long.")
    if not os.path.isdir(command.directory):
        return ToolError(f"{name} could not be started: there is no folder {command.directory}.")
    return ToolError(f"{name} could not be started ({error.strerror}): check that it runs in a terminal.")


async def _first(*events: asyncio.Event, seconds: float) -> bool:
    """Wait until one of the events is set. Returns whether the first one is."""
    waits = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
    return events[0].is_set()


class _Child:
    """A process and its output, up to a limit for each stream; the rest is read and discarded."""

    def __init__(self, process: subprocess.Popen[bytes], limit: int) -> None:
        self.exited, self.closed = asyncio.Event(), asyncio.Event()
        self.pid = process.pid
        self._process, self._limit = process, limit
        self._loop = asyncio.get_running_loop()
        self._pipes = {at: pipe for at, pipe in ((1, process.stdout), (2, process.stderr)) if pipe}
        self._open = set(self._pipes)
        self._buffers = {1: bytearray(), 2: bytearray()}
        self._cut: set[int] = set()
        for at, pipe in self._pipes.items():
            os.set_blocking(pipe.fileno(), False)
            self._loop.add_reader(pipe.fileno(), self._read, at)
        threading.Thread(target=self._wait, daemon=True).start()

    @property
    def code(self) -> int | None:
        return self._process.returncode

    def text(self, at: int) -> str:
        is_cut = at in self._cut
        text = codecs.getincrementaldecoder("utf-8")("replace").decode(self._buffers[at], not is_cut)
        return f"{text}\n[Output cut: it was longer than {self._limit} bytes.]" if is_cut else text

    def release(self) -> None:
        """Read no more."""
        for at, pipe in self._pipes.items():
            self._forget(at)
            pipe.close()

    def _wait(self) -> None:
        """Reap the process in a thread of its own, which works in every loop and on every system."""
        self._process.wait()
        with suppress(RuntimeError):  # the loop is gone
            self._loop.call_soon_threadsafe(self.exited.set)

    def _read(self, at: int) -> None:
        try:
            data = os.read(self._pipes[at].fileno(), _CHUNK_BYTES)
        except BlockingIOError:
            return
        if not data:
            self._forget(at)
        buffer = self._buffers[at]
        room = self._limit - len(buffer)
        buffer += data[:room]
        if len(data) > room:
            self._cut.add(at)

    def _forget(self, at: int) -> None:
        if at in self._open:
            self._loop.remove_reader(self._pipes[at].fileno())
            self._open.remove(at)
        if not self._open:
            self.closed.set()


def marked_environment(environment: Mapping[str, str], mark: str) -> dict[str, str]:
    """Return the environment for a process that is found by its mark, with all its descendants."""
    return {**environment, MARK: f"{environment.get(MARK, '')}.{mark}"}


def kill_marked(mark: str) -> None:
    """Kill all processes with the mark, in rounds, since a process may start another meanwhile."""
    for _ in range(_SWEEPS):
        if not _signal_marked(mark, signal.SIGKILL):
            break
        time.sleep(_SWEEP_SECONDS)


def _kill_all(pid: int, mark: str) -> None:
    _signal_all(pid, mark, signal.SIGKILL)
    kill_marked(mark)


def _signal_all(pid: int, mark: str, number: signal.Signals) -> None:
    """Send a signal to the group and to all processes with the mark."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)
    _signal_marked(mark, number)


def _signal_marked(mark: str, number: signal.Signals) -> int:
    """Send a signal to all processes with the mark. Returns how many there are."""
    marked = _marked(mark)
    for pid in marked:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
    return len(marked)


def _marked(mark: str) -> list[int]:
    """Return the processes with a mark. On systems without /proc there are none."""
    needle = f".{mark}".encode()
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
