"""The files of an open database, to notice that one was deleted or replaced."""

from __future__ import annotations

import os

from weft.errors import LostFile

_Identity = tuple[int, int] | None


class OpenFile:
    """The database and its `-wal`, as they were when they were opened.

    SQLite goes on to write to a file that has no name any more, and acknowledges what is lost then.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._place = os.path.abspath(path)
        self._database = _identity(self._place)
        self._wal: _Identity = None

    def check(self) -> None:
        """Raise LostFile if the path names another file now, or none."""
        if self._database is None:  # it is in memory
            return
        wal = _identity(f"{self._place}-wal")
        if _identity(self._place) != self._database or self._wal not in (None, wal):
            raise LostFile(self.path)
        self._wal = wal


def _identity(path: str) -> _Identity:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino
