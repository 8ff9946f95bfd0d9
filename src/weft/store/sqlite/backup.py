"""Copies of the database: made while it is in use, checked, and put back in its place.

A copy is made by SQLite's online backup inside one read transaction. Writers go on meanwhile, and the copy
holds the state of one moment: everything that was acknowledged before it began.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import apsw

from weft.errors import ConfigError, StoreError
from weft.store.backend import BackupProgress, BackupStatus
from weft.store.sqlite.connection import connect, make_private, problems, translated
from weft.store.sqlite.database import Repository
from weft.store.sqlite.migrations import find_version

_PAGES = 256
"""Pages in a step: a megabyte, after which progress is reported and a cancelled copy ends."""


class SqliteBackups(Repository):
    """Backups of the file, to be mixed into its backend."""

    async def backup(self, path: str | Path, *, progress: BackupProgress | None = None) -> int:
        if self._database.path == ":memory:":
            raise StoreError("This store is in memory only: there is no file to back up.")
        started, stop = time.time(), threading.Event()

        def step(done: int, total: int) -> None:
            if stop.is_set():
                raise StoreError("The backup was stopped: no file was written.")
            if progress is not None:
                progress(done, total)

        source = (Path(self._database.path), self._database.uri)
        copying = asyncio.ensure_future(asyncio.to_thread(_make, source, Path(path), step))
        try:
            target, size = await asyncio.shield(copying)
        except asyncio.CancelledError:
            stop.set()
            with suppress(StoreError):
                await copying
            raise
        if not self._database.is_read_only:  # else nothing can be recorded, and the copy is as good
            query = "insert or replace into backups(id, at, path) values(1, ?, ?)"
            await self._execute(query, started, str(target))
        return size

    async def backup_status(self) -> BackupStatus:
        query = (
            "select (select at from backups) as at, coalesce((select path from backups), '') as path, "
            "exists(select 1 from messages) as has_messages"
        )
        [status] = await self._fetch(BackupStatus, query)
        return status


def restore(database: Path, backup: Path) -> Path | None:
    """Put a backup in the place of the database. Returns where the old database is now, if there was one.

    Nothing is changed unless the backup passes the check and nobody has the database open.

    Raises:
        ConfigError: there is no such backup.
        StoreError: the backup is damaged, or the database is open in a program.
    """
    if not backup.is_file():
        raise ConfigError(f"There is no file {backup}: name a file that `weft backup` wrote.")
    if database.exists() and backup.samefile(database):
        raise ConfigError(f"{backup} is the database itself: name a file that `weft backup` wrote.")
    with _copied((backup, str(backup)), database) as copy, _locked(database):
        old = _move_away(database)
        copy.replace(database)
        _sync_folder(database.parent)
    return old


def _make(source: tuple[Path, str], target: Path, progress: BackupProgress) -> tuple[Path, int]:
    target = target.expanduser().absolute()
    if target.exists() or target.is_symlink():
        raise ConfigError(
            f"There is something at {target} already, and a backup overwrites nothing: name a new file, or a "
            "folder with `--keep N`."
        )
    with _copied(source, target, progress) as copy:
        copy.replace(target)
        _sync_folder(target.parent)
    return target, target.stat().st_size


@contextmanager
def _copied(origin: tuple[Path, str], target: Path, progress: BackupProgress | None = None) -> Iterator[Path]:
    """Yield a checked copy of a database under a temporary name beside the target; rename it to keep it.

    `origin` is the file, and the name by which to open it for reading.
    """
    source, uri = origin
    part = target.with_name(f".{target.name}.part-{os.getpid()}")
    try:
        with translated(str(target)):
            make_private(part)
        with translated(str(source)), closing(connect(uri, read_only=True)) as db:
            if find_version(db, str(source)) == 0:
                raise StoreError(f"{source} is not a Weft store: name another file.")
            # One read transaction from here on: otherwise each write of others would start the copy again.
            db.execute("begin; select count(*) from sqlite_schema")
            with translated(str(target)), closing(apsw.Connection(str(part))) as copy:
                _copy(db, copy, progress)
        yield part
    finally:
        for end in ("", "-journal", "-wal", "-shm"):
            Path(f"{part}{end}").unlink(missing_ok=True)


def _copy(db: apsw.Connection, copy: apsw.Connection, progress: BackupProgress | None) -> None:
    with copy.backup("main", db, "main") as backup:
        while not backup.done:
            backup.step(_PAGES)
            if progress is not None:
                progress(backup.page_count - backup.remaining, backup.page_count)
    copy.pragma("journal_mode", "delete")  # one file, which can be read where nothing can be written
    if trouble := problems(copy):
        raise StoreError(f"The copy is damaged ({trouble[0]}), so it was deleted: run `weft doctor`.")


@contextmanager
def _locked(database: Path) -> Iterator[None]:
    """Hold the only connection to a database, if there is one.

    A file that SQLite cannot read at all is not locked: it is what a backup is restored for.
    """
    if not database.exists():
        yield
        return
    with closing(apsw.Connection(str(database))) as db:
        # Without this the file would be changed when the connection is closed, after it has been moved.
        db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        db.pragma("locking_mode", "exclusive")
        try:
            db.execute("begin exclusive")
        except apsw.BusyError as error:
            raise StoreError(
                f"{database} is open in a program: stop `weft serve` and what else uses it, and try again."
            ) from error
        except (apsw.NotADBError, apsw.CorruptError):
            pass
        yield


def _move_away(database: Path) -> Path | None:
    """Rename the database and its `-wal`; both are needed to read it."""
    if not database.exists():
        return None
    old = database.with_name(f"{database.name}.before-restore-{datetime.now(UTC):%Y%m%d-%H%M%S-%f}")
    for end in ("-wal", ""):
        with suppress(FileNotFoundError):
            Path(f"{database}{end}").rename(f"{old}{end}")
    Path(f"{database}-shm").unlink(missing_ok=True)
    return old


def _sync_folder(folder: Path) -> None:
    """Force a rename to disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
