"""One SQLite file: a writer that commits in groups, readers beside it, and errors in our words.

Every write of the process goes through one thread. Writes that have piled up while it was committing become
the next transaction, so that many small writes cost one. A write is acknowledged after its commit is on disk:
in the `-wal` file, which SQLite moves into the file itself from time to time and when the store is closed.
A read of a few rows is done at once, in the thread of the loop: the way to another thread and back costs more
than the rows. Long ones are done by threads of their own; those that are asked for at the same moment, by one
thread in one go.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import apsw

from weft.errors import StoreError, WeftError
from weft.store.sqlite.connection import connect, open_writer, translated
from weft.store.sqlite.guard import guarded
from weft.store.sqlite.migrations import migrate
from weft.store.sqlite.open_file import OpenFile
from weft.store.sqlite.rows import fetch
from weft.store.sqlite.schema import Table
from weft.store.sqlite.tables import TABLES

T = TypeVar("T")
_log = logging.getLogger(__name__)
Work = Callable[[apsw.Connection], T]
"""Work may be run a second time, if another job of its group failed and all of them were undone."""
_Outcome = tuple[Any, BaseException | None]

READERS = 4
_GROUP = 256
_OPERATIONS = 10_000
"""How many steps of SQLite pass, a millisecond or less, before it asks whether to go on reading."""
_FEW_OPERATIONS = 500
_QUICK_SECONDS = 0.002
"""How long a lookup may hold the event loop before a thread does it instead, and how long lookups one after
another may before others run."""


@dataclass(slots=True)
class _Job(Generic[T]):
    """One piece of work, and the future that waits for it in its loop."""

    work: Work[T]
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[T]

    def deliver(self, result: T | None, error: BaseException | None) -> None:
        """Settle the future from another thread."""
        with suppress(RuntimeError):  # the loop was closed: nobody waits any more
            self.loop.call_soon_threadsafe(self.settle, result, error)

    def settle(self, result: T | None, error: BaseException | None) -> None:
        if self.future.cancelled():
            return
        if error is not None:
            self.future.set_exception(error)
        else:
            self.future.set_result(result)  # type: ignore[arg-type]


class _JobFailed(Exception):
    """One job of a group failed; doing the jobs one by one shows which."""


class Database:
    """Connections to one file. `write` and `read` take a function, and call it with a connection."""

    def __init__(self, path: str, tables: Sequence[Table] = TABLES) -> None:
        self.path, self.tables = path, tables
        self._in_memory = path == ":memory:"
        self._jobs: queue.SimpleQueue[_Job[Any] | None] = queue.SimpleQueue()
        self._reads: dict[asyncio.AbstractEventLoop, list[_Job[Any]]] = {}
        self._readers = ThreadPoolExecutor(READERS, "weft-store-read")
        self._reader = threading.local()  # the `connection` and the `job` of a thread that reads
        self._here = threading.local()  # the same of a thread with a loop, and when its lookup and turn end
        self._connections: list[apsw.Connection] = []
        self._closed = False
        with translated(path):
            self._writer, self.uri = open_writer(path)
            migrate(self._writer, path, tables)
        self.file = OpenFile(path)
        self._guarded = self._writer
        self.is_read_only = self._writer.readonly("main")
        if self.is_read_only:
            _log.warning("%s cannot be written to: it is read, and nothing new is kept.", path)
        self._thread = threading.Thread(target=self._write_forever, name="weft-store", daemon=True)
        self._thread.start()

    async def write(self, work: Work[T]) -> T:
        """Run work in a transaction. When this returns, what the work wrote is on disk."""
        job = self._job(work)
        self._jobs.put(job)
        return await job.future

    async def read(self, work: Work[T]) -> T:
        """Run work that only reads, beside the writer. It sees everything that was acknowledged."""
        if self._in_memory:
            return await self.write(work)
        job = self._job(work)
        if job.loop not in self._reads:
            self._reads[job.loop] = []
            job.loop.call_soon(self._start_reading, job.loop)
        self._reads[job.loop].append(job)
        return await job.future

    async def lookup(self, work: Work[T]) -> T:
        """Run work that reads a few rows, without a way to another thread. It may be run a second time.

        SQLite interrupts it if it takes longer than a lookup should; then a thread begins it again. A search
        in the full-text index is no lookup, because SQLite cannot interrupt one step of it.
        """
        if self._in_memory:
            return await self.write(work)
        self._check_open()
        with translated(self.path):
            connection, now = self._connection_here(), time.monotonic()
            if now > self._here.turn_ends:  # many lookups in a row must not keep others from running
                await asyncio.sleep(0)
                now = time.monotonic()
                self._here.turn_ends = now + _QUICK_SECONDS
            self._here.until = now + _QUICK_SECONDS
            with suppress(apsw.InterruptError, apsw.BusyError), connection:
                return work(connection)
        return await self.read(work)

    def _connection_here(self) -> apsw.Connection:
        """Return the connection for the lookups of this thread. It waits for nobody."""
        connection: apsw.Connection | None = getattr(self._here, "connection", None)
        if connection is None:
            connection = self._here.connection = connect(self.uri, read_only=True)
            self._here.turn_ends = 0.0
            connection.set_busy_handler(None)
            connection.set_progress_handler(lambda: time.monotonic() > self._here.until, _FEW_OPERATIONS)
            self._connections.append(connection)
        return connection

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError("The store is closed: open it again to use it.")

    def _job(self, work: Work[T]) -> _Job[T]:
        self._check_open()
        loop = asyncio.get_running_loop()
        return _Job(work, loop, loop.create_future())

    def _start_reading(self, loop: asyncio.AbstractEventLoop) -> None:
        """Hand all reads of this moment to one thread."""
        jobs = self._reads.pop(loop)
        try:
            reading = loop.run_in_executor(self._readers, self._read_all, jobs)
        except RuntimeError as error:  # no thread could be started
            for job in jobs:
                job.settle(None, error)
            return
        reading.add_done_callback(lambda done: _settle_all(jobs, done))

    async def compact(self) -> None:
        """Write the file anew without deleted pages, and empty the `-wal` beside it."""
        if not self._in_memory:
            await asyncio.to_thread(self._compact_now)

    def _compact_now(self) -> None:
        self.file.check()
        with translated(self.path), closing(connect(self.path)) as connection:
            connection.execute("vacuum")
            busy, *_ = connection.execute("pragma wal_checkpoint(truncate)").fetchone() or (0,)
        if busy:
            raise StoreError(
                f"Another program reads {self.path}, so old pages of it are still there: close it, try again."
            )

    async def close(self) -> None:
        """Finish all reads and writes, then close the file."""
        if self._closed:
            return
        self._closed = True
        await asyncio.sleep(0)  # reads of a moment ago are handed to a thread first
        await asyncio.to_thread(self._readers.shutdown)
        self._jobs.put(None)
        await asyncio.to_thread(self._thread.join)
        for connection in (*self._connections, self._writer):  # the last one moves the `-wal` into the file
            connection.close()

    def _read_all(self, jobs: list[_Job[Any]]) -> list[_Outcome]:
        connection = getattr(self._reader, "connection", None)
        if connection is None:
            with translated(self.path):
                connection = self._reader.connection = connect(self.uri, read_only=True)
            self._reader.job = None
            connection.set_progress_handler(self._is_unwanted, _OPERATIONS)
            self._connections.append(connection)
        return [self._read_now(connection, job) for job in jobs]

    def _read_now(self, connection: apsw.Connection, job: _Job[Any]) -> _Outcome:
        if job.future.cancelled():
            return None, None
        with translated(self.path), connection:
            self._reader.job = job
            outcome = self._outcome(job, connection)
            self._reader.job = None
        return outcome

    def _is_unwanted(self) -> bool:
        """Return whether nobody waits any more for what this thread reads: SQLite then stops reading it."""
        job: _Job[Any] | None = self._reader.job
        return job is not None and job.future.cancelled()

    def _write_forever(self) -> None:
        while group := self._next_group():
            self._commit(group)
            group.clear()  # a waiting thread must not keep alive what was written

    def _next_group(self) -> list[_Job[Any]]:
        """Return the jobs that have piled up, at least one; none when the store closes."""
        group: list[_Job[Any]] = []
        while not group or (len(group) < _GROUP and not self._jobs.empty()):
            job = self._jobs.get()
            if job is None:
                if group:
                    self._jobs.put(None)
                break
            group.append(job)
        return group

    def _commit(self, group: list[_Job[Any]]) -> None:
        """Run all jobs in one transaction. If one fails, run them again so that only that one is undone."""
        try:
            try:
                outcomes = self._transaction(group, self._together)
            except _JobFailed:
                outcomes = self._transaction(group, self._apart)
        except WeftError as error:
            outcomes = [(None, error)] * len(group)
        for job, (result, failure) in zip(group, outcomes, strict=True):
            job.deliver(result, failure)

    def _transaction(
        self, group: list[_Job[Any]], run: Callable[[list[_Job[Any]]], list[_Outcome]]
    ) -> list[_Outcome]:
        self.file.check()  # before: a new file would read our `-wal`
        with translated(self.path):
            try:
                self._writer.execute("begin immediate")
                self._guarded = guarded(self._writer)
                outcomes = run(group)
                self._writer.execute("commit")
            finally:
                if self._writer.in_transaction:
                    self._writer.execute("rollback")
        self.file.check()  # and after: what is acknowledged is in the file that the path names
        return outcomes

    def _together(self, group: list[_Job[Any]]) -> list[_Outcome]:
        """Run jobs without a savepoint for each: the full-text index is written out at every savepoint."""
        try:
            return [(job.work(self._guarded), None) for job in group]
        except Exception as error:
            raise _JobFailed from error

    def _apart(self, group: list[_Job[Any]]) -> list[_Outcome]:
        return [self._attempt(job) for job in group]

    def _attempt(self, job: _Job[Any]) -> _Outcome:
        self._writer.execute("savepoint job")
        result, error = self._outcome(job, self._guarded)
        if error is not None:
            if not self._writer.in_transaction:
                raise error
            self._writer.execute("rollback to job")
        self._writer.execute("release job")
        return result, error

    def _outcome(self, job: _Job[Any], connection: apsw.Connection) -> _Outcome:
        """Run a job. A failure is part of the outcome, for the caller that waits for it."""
        try:
            with translated(self.path):
                return job.work(connection), None
        except Exception as error:  # noqa: BLE001 - the caller gets it
            return None, error


class Repository:
    """The base of the classes that read and write some of the tables."""

    def __init__(self, database: Database) -> None:
        self._database, self._write = database, database.write
        self._read, self._lookup = database.read, database.lookup

    async def _fetch(self, cls: type[T], query: str, *values: Any) -> list[T]:
        """Look up the rows of a query, each as a dataclass."""
        return await self._lookup(lambda db: fetch(db, cls, query, *values))

    async def _rows(self, query: str, *values: Any) -> list[Any]:
        return await self._lookup(lambda db: db.execute(query, values).fetchall())

    async def _value(self, cls: type[T], query: str, *values: Any) -> T | None:
        """Look up the first value of a query, which is of this type, or None."""
        return await self._lookup(lambda db: db.execute(query, values).get)

    async def _execute(self, query: str, *values: Any) -> int:
        """Run a statement in a transaction of its own. Returns the number of changed rows."""

        def work(db: apsw.Connection) -> int:
            db.execute(query, values)
            return db.changes()

        return await self._write(work)


def _settle_all(jobs: list[_Job[Any]], done: asyncio.Future[list[_Outcome]]) -> None:
    """Settle the futures of all jobs with what was read, or with the reason why nothing was."""
    if done.cancelled():
        for job in jobs:
            job.future.cancel()
        return
    failure = done.exception()
    outcomes = [(None, failure)] * len(jobs) if failure else done.result()
    for job, (result, error) in zip(jobs, outcomes, strict=True):
        job.settle(result, error)
