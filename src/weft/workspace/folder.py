"""Looking into a folder that is watched: which of its files are not as they were. All of it blocks."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from weft.workspace.files import file_at, inside, read_now, signature_of

_JUST_WRITTEN_NS = 2_000_000_000
"""Some file systems tell times by two seconds: what is younger may change again under the same signature."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedFile:
    """A file as it was read. `text` is None for one that is no text, and `warning` says why.

    One that was written just now has no signature: nobody can tell by it whether it changes again.
    """

    name: str
    signature: str = ""
    text: str | None = None
    warning: str = ""


def changed_files(folder: str, pattern: str, is_known: Callable[[str, str], bool]) -> Iterator[WatchedFile]:
    """The files right in a folder whose signatures are not known, the one that was written first first.

    Hidden files, folders, pipes and links that lead out of the folder are passed over.

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
                if signature and not is_known(entry.name, _told(signature)):
                    listed.append((signature, entry.name))
    for signature, name in sorted(listed):
        file = file_at(folder, name)
        settled = max(signature[0], signature[3]) < time.time_ns() - _JUST_WRITTEN_NS
        read = read_now(file)
        if not read.missing:
            told = _told(signature) if settled else ""
            yield WatchedFile(name=name, signature=told, text=read.text, warning=read.warning)


def _is_ours(folder: str, entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file() and (not entry.is_symlink() or inside(folder, entry.name) is not None)
    except (OSError, ValueError):
        return False


def _told(signature: tuple[int, ...]) -> str:
    return "-".join(map(str, signature))
