"""Files in folders that the owner opened: read, list and search, and write after a person agreed.

A link counts as the place it leads to. Hidden files, files with keys, and Weft's own settings and database
are out of reach, wherever the folders are.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from difflib import unified_diff
from fnmatch import fnmatch
from pathlib import Path
from tempfile import NamedTemporaryFile

from weft.errors import ToolError
from weft.private_files import make_private_folder
from weft.tools.base import Tool
from weft.tools.builtin import SOURCE
from weft.tools.function import tool_from
from weft.types.escape import fenced, one_line, printable, visible
from weft.types.request import Caller

MAX_BYTES = 1_000_000
_MOST_LISTED, _MOST_HITS, _MOST_SEARCHED = 500, 100, 5_000
_MOST_DIFF = 20_000
"""A longer change is refused: a person must see all of what they agree to."""
_LINE = 200
_SECRETS = (
    ".*",
    "*.key",
    "*.kdbx",
    "*.p12",
    "*.pem",
    "*.pfx",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    "id_rsa*",
    "credentials*",
    "secrets.*",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileToolSettings:
    """The folders that the tools of `files` may use."""

    folders: tuple[str, ...] = ()


class FileTools:
    """The tools of `files`. `private` are files that they never touch."""

    def __init__(self, folders: Sequence[str], private: Sequence[Path] = ()) -> None:
        self._roots = [Path(folder).expanduser().resolve() for folder in folders]
        self._private = tuple(str(path.resolve()) for path in private)

    def read_file(self, path: str) -> str:
        """Read a text file.

        Args:
            path: The file, as `list_files` shows it.
        """
        return self._read(self._place(path))

    def list_files(self, folder: str = "") -> str:
        """List the files in a folder; without one, the folders that may be used.

        Args:
            folder: The folder, as a list shows it.
        """
        if not folder:
            return "\n".join(f"{root}/" for root in self._roots)
        place = self._place(folder)
        try:
            entries = sorted(path for path in place.iterdir() if self._may_use(path.resolve()))
        except OSError as error:
            raise _failure("listed", folder, error) from error
        lines = [f"{path}/" if path.is_dir() else f"{path}" for path in entries[:_MOST_LISTED]]
        if len(entries) > _MOST_LISTED:
            lines.append(f"[{len(entries) - _MOST_LISTED} more are not listed.]")
        return "\n".join(lines) or "(no files)"

    def search_files(self, text: str, folder: str = "") -> str:
        """Search the text files in a folder and below for a text; without a folder, in all that may be used.

        Args:
            text: What to look for; capital letters make no difference.
            folder: The folder, as a list shows it.
        """
        if not text:
            raise ToolError("There is nothing to look for: give a text.")
        hits: list[str] = []
        for count, path in enumerate(self._walk([self._place(folder)] if folder else self._roots)):
            if count == _MOST_SEARCHED or len(hits) >= _MOST_HITS:
                hits.append("[The search stopped here: name a smaller folder.]")
                break
            with suppress(ToolError):
                lines = enumerate(self._read(path).splitlines(), 1)
                found = [(at, line) for at, line in lines if text.lower() in line.lower()]
                hits += [f"{path}:{at}: {line.strip()[:_LINE]}" for at, line in found]
        return "\n".join(hits[: _MOST_HITS + 1]) or "(nothing found)"

    async def write_file(self, path: str, content: str, caller: Caller) -> str:
        """Write a text file, all of it. The person sees the change and must agree to it.

        Args:
            path: The file; its folder must be one that may be used.
            content: The whole new text.
        """
        place = self._place(path)
        before = await asyncio.to_thread(self._read_if_there, place)
        diff = "\n".join(
            unified_diff((before or "").splitlines(), content.splitlines(), "before", "after", lineterm="")
        )
        if before == content:
            return f"{place} has this text already."
        if len(content.encode("utf-8", "replace")) > MAX_BYTES or len(diff) > _MOST_DIFF:
            raise ToolError("This change is too large to be shown to a person: make it in smaller steps.")
        what = "make the file" if before is None else "change the file"
        change = fenced(printable(visible(diff)), "diff") if diff else "(an empty file)"
        question = f"May I {what} `{one_line(str(place))}`?\n\n{change}"
        if caller.ask is None or not await caller.ask(question):
            raise ToolError(f"{place} was not written: nobody agreed to it.")
        if await asyncio.to_thread(self._read_if_there, self._place(path)) != before:
            raise ToolError(f"{place} changed while the person was asked: read it again.")
        await asyncio.to_thread(_write, place, content)
        return f"{place} was written."

    def _place(self, path: str) -> Path:
        """Return the place that a path leads to.

        Raises:
            ToolError: it is outside of the folders, or may not be used.
        """
        if ".." in Path(path).parts or "\0" in path:
            raise ToolError(f"{path!r} has `..` in it: name the file by its own path.")
        places = [(root / Path(path).expanduser()).resolve() for root in self._roots]
        usable = [place for place in places if self._may_use(place)]
        if not usable:
            raise ToolError(
                f"{path!r} is outside of the folders that may be used, or is private: "
                "`list_files` without a folder lists them."
            )
        return next((place for place in usable if place.exists()), usable[0])

    def _may_use(self, place: Path) -> bool:
        if str(place).startswith(self._private):
            return False
        inside = [place.relative_to(root).parts for root in self._roots if place.is_relative_to(root)]
        return any(not any(map(is_secret, parts)) for parts in inside)

    def _walk(self, folders: Sequence[Path]) -> Iterator[Path]:
        for folder in folders:
            for root, names, files in os.walk(folder):
                names[:] = sorted(name for name in names if not is_secret(name))
                yield from (
                    path for name in sorted(files) if self._may_use((path := Path(root, name)).resolve())
                )

    def _read_if_there(self, place: Path) -> str | None:
        return self._read(place) if place.exists() else None

    def _read(self, place: Path) -> str:
        try:
            # A pipe would make us wait, and a link could have been put here since its place was checked.
            handle = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            with os.fdopen(handle, "rb") as file:
                is_file = stat.S_ISREG(os.fstat(handle).st_mode)
                data = file.read(MAX_BYTES + 1) if is_file else b""
        except OSError as error:
            raise _failure("read", str(place), error) from error
        if not is_file or b"\0" in data:
            raise ToolError(f"{place} is no text file.")
        if len(data) > MAX_BYTES:
            raise ToolError(f"{place} has more than {MAX_BYTES:,} bytes: only smaller files are read.")
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ToolError(f"{place} is no UTF-8 text.") from error


def file_tools(settings: FileToolSettings, private: Sequence[Path] = ()) -> list[Tool]:
    tools = FileTools(settings.folders, private)
    reading = (tools.read_file, tools.list_files, tools.search_files)
    made = [replace(tool_from(each, source="a file", kind="read"), origin="import") for each in reading]
    made.append(tool_from(tools.write_file, source=SOURCE, kind="asks"))
    return [replace(tool, owner_only=True) for tool in made]


def is_secret(name: str) -> bool:
    """Return whether a file of this name is hidden, or usually holds keys."""
    return any(fnmatch(name.lower(), pattern) for pattern in _SECRETS)


def _write(place: Path, content: str) -> None:
    """Replace a file in one step. It keeps its permissions."""
    try:
        make_private_folder(place.parent)
        mode = place.stat().st_mode if place.exists() else None
        with NamedTemporaryFile("wb", dir=place.parent, delete=False) as file:
            file.write(content.encode("utf-8", "replace"))
        if mode is not None:
            os.chmod(file.name, stat.S_IMODE(mode))
        os.replace(file.name, place)
    except OSError as error:
        raise _failure("written", str(place), error) from error


def _failure(what: str, path: str, error: OSError) -> ToolError:
    return ToolError(f"{path} cannot be {what} ({(error.strerror or str(error)).lower()}).")
