"""Reading the files of a workspace: together, once, and never a crash.

A file that cannot be shown (missing, unreadable, binary, a loop, a link that leaves the workspace) gives
a warning with its path; the caller goes on without it. What was read is remembered by the file's
signature, and how often that is looked at is the recipe's choice.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

from weft.errors import WorkspaceError
from weft.types.recipe import Reload

LARGE_BYTES = 1_000_000
"""Above this size a file is called large in its warning."""
PIECES_BYTES = 4_000_000
"""Above this size a file of entries is read and ranked in pieces, and is never in memory as a whole."""
CAP_BYTES = 16_000_000
"""No more of a text is read: no model reads as much."""
CHUNK_BYTES = 256_000
PLACEHOLDERS = frozenset(
    (
        "77898cd8acfed5ea8b83f845f46bd48711e324b17c97a3ddf2f5eceae82ea2f6",
        "97ff5266c9e5111c7858aa486dd661e667613f0356b6c1deb6cfea8565da7b64",
        "cab3a431c4d4599856fc7d403b0a0296857525ee18741621d4397405795d3eba",
        "ee51521a4a06dc10762023f3e7284b0bad12f43707ed991ee0bb16b5b5edef06",
    )
)
"""The SHA-256 of files that `weft init` made, now or in an earlier version, and that say nothing yet."""


class FileAt(NamedTuple):
    """A folder, the name of a file that must stay inside it, and the two as one path."""

    root: str
    name: str
    path: str


def file_at(root: str | Path, name: str) -> FileAt:
    return FileAt(str(root), name, os.path.join(root, name))


T = TypeVar("T")
_log = logging.getLogger(__name__)
_LINE_START = re.compile(r"\n(?=\S)")
_JUST_WRITTEN_NS = 100_000_000
"""A file changed so shortly before it was read may change again under the same time stamp."""
FEW_FILES = 32
"""So many files are looked at in the event loop: the way to a thread takes longer than a few system calls."""


@dataclass(frozen=True, slots=True)
class FileText:
    """One file as read. `text` is None where there is nothing to show, and `warning` says why."""

    path: str
    text: str | None = None
    warning: str = ""
    missing: bool = False


@dataclass(slots=True)
class _Remembered:
    file: FileText
    signature: tuple[int, ...]
    settled: bool
    looked_at: float


class FileReader:
    """Reads text files below given roots and remembers them."""

    def __init__(self, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._remembered: dict[FileAt, _Remembered] = {}
        self._monotonic = monotonic
        self._waiting: list[Callable[[], Any]] = []
        self._gathering: asyncio.Task[list[Any]] | None = None
        self._reading: dict[FileAt, asyncio.Task[FileText]] = {}
        self.reads = 0

    def forget(self) -> None:
        """Read everything anew next time."""
        self._remembered.clear()

    async def read(
        self, files: Sequence[FileAt], *, reload: Reload = "per_turn", ttl_seconds: float = 30.0
    ) -> list[FileText]:
        """Read files, in this order. Those that changed are read concurrently."""
        found = {file: self._cached(file, reload, ttl_seconds) for file in files}
        if unsure := [file for file, known in found.items() if known is None]:
            found |= await self.refresh(
                self.look(unsure)
                if len(unsure) <= FEW_FILES
                else await self.together(lambda: self.look(unsure))
            )
        return [known for file in files if (known := found[file]) is not None]

    def look(self, files: Sequence[FileAt]) -> dict[FileAt, FileText | None]:
        """Return cached files that have not changed on disk, and None for the others. This blocks."""
        now = self._monotonic()
        found: dict[FileAt, FileText | None] = {}
        for file in files:
            known = self._remembered.get(file)
            if known is not None and known.settled and known.signature == signature_of(file.path):
                known.looked_at = now
                found[file] = known.file
            else:
                found[file] = None
        return found

    async def refresh(self, looked: dict[FileAt, FileText | None]) -> dict[FileAt, FileText | None]:
        """Read the files that are None, all at once."""
        changed = [file for file, known in looked.items() if known is None]
        if changed:
            read = await asyncio.gather(*(self._read_once(file) for file in changed))
            looked |= zip(changed, read, strict=True)
        return looked

    async def together(self, work: Callable[[], T]) -> T:
        """Run blocking work in one thread, together with that of all who ask at this moment."""
        loop = asyncio.get_running_loop()
        if self._gathering is None or self._gathering.get_loop() is not loop:
            self._waiting, self._gathering = [], loop.create_task(self._run_all())
        at = len(self._waiting)
        self._waiting.append(work)
        results = await asyncio.shield(self._gathering)
        return cast("T", results[at])

    async def _run_all(self) -> list[Any]:
        await asyncio.sleep(0)
        works, self._waiting, self._gathering = self._waiting, [], None
        return await asyncio.to_thread(lambda: [work() for work in works])

    async def _read_once(self, file: FileAt) -> FileText:
        """Read a file; whoever wants it at the same moment shares the reading."""
        loop = asyncio.get_running_loop()
        task = self._reading.get(file)
        if task is None or task.get_loop() is not loop:
            self.reads += 1
            task = self._reading[file] = loop.create_task(asyncio.to_thread(self._read_anew, file))
            task.add_done_callback(lambda _: self._reading.pop(file, None))
        return await asyncio.shield(task)

    def _cached(self, file: FileAt, reload: Reload, ttl_seconds: float) -> FileText | None:
        """Return a cached file where the reload rule wants no look at the disk."""
        known = self._remembered.get(file)
        if known is None or reload == "per_turn":
            return None
        if reload == "ttl" and self._monotonic() - known.looked_at >= ttl_seconds:
            return None
        return known.file

    def _read_anew(self, file: FileAt) -> FileText:
        signature, started = signature_of(file.path), time.time_ns()
        text = read_now(file)
        settled = not signature or max(signature[0], signature[3]) < started - _JUST_WRITTEN_NS
        self._remembered[file] = _Remembered(text, signature, settled, self._monotonic())
        if text.warning:
            _log.warning("%s", text.warning, extra={"path": file.path, "missing": text.missing})
        return text


def open_workspace(path: str | Path) -> Path:
    """Return the real path of a workspace directory.

    Raises:
        WorkspaceError: there is none, or it is not a directory.
    """
    try:
        found = Path(path).expanduser().resolve(strict=True)
    except (OSError, RuntimeError, ValueError) as error:
        raise WorkspaceError(
            f"There is no workspace at {str(path)!r}: make one with `weft init --workspace PATH`."
        ) from error
    if not found.is_dir():
        raise WorkspaceError(
            f"The workspace {str(path)!r} is not a directory: name the folder that holds it."
        )
    return found


def inside(root: str | Path, name: str) -> str | None:
    """Return the real path of a name below a root, or None if it leads out of it."""
    real_root = os.path.realpath(root)
    real = os.path.realpath(os.path.join(real_root, name))
    return real if real.startswith(os.path.join(real_root, "")) else None


def signature_of(path: str) -> tuple[int, ...]:
    """Return what changes with a file: its times, size and inode; an empty tuple if it is gone."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return ()
    return (found.st_mtime_ns, found.st_size, found.st_ino, found.st_ctime_ns)


def read_now(file: FileAt) -> FileText:
    """Read a file now. This blocks."""
    path = file.path
    try:
        real = inside(file.root, file.name)
        if real is None:
            return FileText(path, warning=f"{path} leads out of its folder and was not read.")
        with open(real, "rb", opener=_open_regular) as opened:
            return _text(path, opened.fileno())
    except FileNotFoundError:
        return FileText(path, warning=f"{path} is missing.", missing=True)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return FileText(path, warning=f"{path} could not be read ({reason.lower()}) and was left out.")


def size_of(file: FileAt) -> int:
    """Return the size of a file in bytes; 0 if it cannot be looked at."""
    return next(iter(signature_of(file.path)[1:2]), 0)


def read_pieces(file: FileAt) -> Iterator[str]:
    """Yield the text of a file in pieces of whole lines. This blocks.

    A piece ends before a line that is neither indented nor inside a comment, so that no entry is cut.

    Raises:
        OSError: it cannot be read.
        ValueError: it leads out of its folder, or is no regular file.
    """
    real = inside(file.root, file.name)
    if real is None:
        raise ValueError("leads out of its folder")
    rest = ""
    with open(real, encoding="utf-8-sig", errors="replace", opener=_open_regular) as opened:
        while chunk := opened.read(LARGE_BYTES):
            rest += chunk
            cut = _end_of_entries(rest)
            if cut:
                yield rest[:cut]
                rest = rest[cut:]
    if rest:
        yield rest


def _end_of_entries(text: str) -> int:
    """Return where the last whole entry of a text ends; 0 if that is not known yet."""
    closed = text.rfind("-->")
    comment = text.find("<!--", closed + 1)
    end = len(text) if comment < 0 else comment
    starts = [match.end() for match in _LINE_START.finditer(text, max(0, end - CHUNK_BYTES), end)]
    return starts[-1] if starts else 0


def _open_regular(path: str, flags: int) -> int:
    """Open without waiting: a pipe in place of a file must not stop a turn."""
    handle = os.open(path, flags | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise ValueError("not a regular file")
    return handle


def _text(path: str, handle: int) -> FileText:
    size = os.fstat(handle).st_size
    chunks: list[bytes] = []
    room = CAP_BYTES
    while room > 0 and (chunk := os.read(handle, min(CHUNK_BYTES, room))):
        if b"\0" in chunk:
            return FileText(path, warning=f"{path} is not text and was left out.")
        chunks.append(chunk)
        room -= len(chunk)
    data = b"".join(chunks)
    if size > len(data):
        return _shortened(path, data, size)
    if sha256(data).hexdigest() in PLACEHOLDERS:
        return FileText(path, "")
    large = f"{path} is large: all of its {size} bytes were read." if size > LARGE_BYTES else ""
    try:
        return FileText(path, data.decode("utf-8-sig"), large)
    except UnicodeDecodeError:
        warning = f"{path} is not UTF-8: the bytes that are not were shown as {chr(0xFFFD)}."
        return FileText(path, data.decode("utf-8-sig", "replace"), warning)


def _shortened(path: str, data: bytes, size: int) -> FileText:
    """Return the beginning of a file that is too large, cut between characters, with a notice."""
    line_end = data.rfind(b"\n")
    near = line_end > len(data) - CHUNK_BYTES
    data = data[: line_end if near else len(data) - _unfinished(data)]
    notice = f"[The file goes on: {len(data)} of {size} bytes are shown.]"
    text = data.decode("utf-8-sig", "replace")
    return FileText(path, f"{text}\n{notice}", f"{path} is large: {len(data)} of {size} bytes were read.")


def _unfinished(data: bytes) -> int:
    """Count the bytes at the end that begin an incomplete character."""
    for length in range(1, min(4, len(data)) + 1):
        byte = data[-length]
        if byte >= 0xC0:
            width = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return length if length < width else 0
        if byte < 0x80:
            return 0
    return 0
