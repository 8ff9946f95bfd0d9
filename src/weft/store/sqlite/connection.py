"""Connections to an SQLite file, and its errors in our words."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import apsw

from weft.errors import ReadOnlyStore, StoreError
from weft.private_files import make_private_folder, private_opener

BUSY_SECONDS = 30.0


def open_writer(path: str) -> tuple[apsw.Connection, str]:
    """Open a file, and return the name by which to open it for reading.

    A file in a folder that cannot be written to has no place for its `-shm`: it is opened as one that nobody
    changes.
    """
    connection = connect(path)
    if connection.readonly("main"):
        try:
            connection.execute("select count(*) from sqlite_schema")
        except (apsw.CantOpenError, apsw.ReadOnlyError):
            connection.close()
            path = f"{Path(path).absolute().as_uri()}?immutable=1"
            connection = connect(path, read_only=True)
    return connection, path


def connect(path: str, *, read_only: bool = False) -> apsw.Connection:
    if path != ":memory:" and not read_only:
        make_private(Path(path))
    flags = apsw.SQLITE_OPEN_READONLY if read_only else apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
    connection = apsw.Connection(path, flags=flags | apsw.SQLITE_OPEN_URI)
    connection.set_busy_handler(_patience())
    connection.enable_load_extension(True)
    connection.load_extension(_vector_extension())
    connection.enable_load_extension(False)
    connection.pragma("foreign_keys", True)
    if not connection.readonly("main"):
        if path != ":memory:":
            connection.pragma("journal_mode", "wal")
        connection.pragma("synchronous", "full")
    return connection


def make_private(path: Path) -> None:
    """Create an empty file that only its owner may read, unless it exists; its folder likewise."""
    make_private_folder(path.parent)
    with suppress(FileExistsError):
        open(path, "x", opener=private_opener).close()


def problems(db: apsw.Connection) -> list[str]:
    """Return the problems of a database; none, if all is well."""
    rows = [str(row[0]) for row in db.execute("pragma integrity_check")]
    return [row for row in rows if row != "ok"] + [str(row) for row in db.execute("pragma foreign_key_check")]


@cache
def _vector_extension() -> str:
    """Return the path of the extension. Importing its package would import numpy, which we do not need."""
    spec = find_spec("sqlite_vec")
    if spec is None or spec.origin is None:
        raise StoreError("The package sqlite-vec is missing: install Weft again.")
    return str(Path(spec.origin).parent / "vec0")


def _patience() -> Callable[[int], bool]:
    """Return a busy handler that waits random moments: with SQLite's own steps one process can starve."""
    started = [0.0]

    def wait(attempts: int) -> bool:
        if attempts == 0:
            started[0] = time.monotonic()
        if time.monotonic() - started[0] > BUSY_SECONDS:
            return False
        time.sleep(random.uniform(0.0005, 0.004))  # noqa: S311 - jitter, not a secret
        return True

    return wait


@contextmanager
def translated(path: str) -> Iterator[None]:
    """Turn SQLite's errors into one sentence with a remedy."""
    try:
        yield
    except apsw.Error as error:
        kind = ReadOnlyStore if isinstance(error, apsw.ReadOnlyError) else StoreError
        raise kind(explain(error, path)) from error
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise StoreError(f"{path} cannot be used ({reason}): name another place.") from error


def explain(error: apsw.Error, path: str) -> str:
    """Describe an error of SQLite to a person."""
    for kind, sentence in _SENTENCES.items():
        if isinstance(error, kind):
            return sentence.format(path=path)
    return f"The store {path} failed: {error}."


_SENTENCES: dict[type[apsw.Error], str] = {
    apsw.NotADBError: "{path} is not a Weft store: name another file, or move this one away.",
    apsw.BusyError: "{path} is in use by another program that does not let go: close it and try again.",
    apsw.LockedError: "{path} is in use by another program that does not let go: close it and try again.",
    apsw.FullError: "The disk of {path} is full: nothing was written; make room and try again.",
    apsw.ReadOnlyError: "{path} cannot be written to: check its permissions, or open a copy of it.",
    apsw.CantOpenError: "{path} cannot be opened: check that its folder exists and can be written to.",
    apsw.CorruptError: "{path} is damaged: `weft doctor` has details, `weft restore PATH` takes a backup.",
}
