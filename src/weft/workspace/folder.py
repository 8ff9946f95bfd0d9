"""The changed files of a watched folder. Everything here blocks."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from weft.workspace.files import file_at, inside, read_now, signature_of

_JUST_WRITTEN_NS = 2_000_000_000
"""Some file systems round times to two seconds: a younger file may change under the same signature."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedFile:
    """A file as it was read. `text` is None for a file that is no text, and `warning` says why.

    A file that was written just now has no signature, because it could change again under the same one.
    """

    name: str
    signature: str = ""
    text: str | None = None
    warning: str = ""


def changed_files(folder: str, pattern: str, is_known: Callable[[str, str], bool]) -> Iterator[WatchedFile]:
    """Yield the files right in a folder whose signatures are not known, the oldest first.

    Hidden files, folders, pipes and links that lead out of the folder are skipped.

    Raises:
        OSError: the folder is missing or cannot be read.
    """
    listed = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if (
                not entry.name.startswith(".")
                and fnmatchcase(entry.name, pattern)
                and _is_ours(folder, entry)
            ):
                signature = signature_of(entry.path)
                if signature and not is_known(entry.name, _joined(signature)):
                    listed.append((signature, entry.name))
    for signature, name in sorted(listed):
        file = file_at(folder, name)
        settled = max(signature[0], signature[3]) < time.time_ns() - _JUST_WRITTEN_NS
        read = read_now(file)
        if not read.missing:
            signed = _joined(signature) if settled else ""
            yield WatchedFile(name=name, signature=signed, text=read.text, warning=read.warning)


def _is_ours(folder: str, entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file() and (not entry.is_symlink() or inside(folder, entry.name) is not None)
    except (OSError, ValueError):
        return False


def _joined(signature: tuple[int, ...]) -> str:
    return "-".join(map(str, signature))
