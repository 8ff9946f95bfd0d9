"""One file: what is acknowledged is there, and what is wrong with it is said in one sentence."""

import asyncio
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import apsw
import pytest

import weft
from weft.store.sqlite import connection as connection_module
from weft.store.sqlite.backend import SqliteBackend
from weft.store.sqlite.database import Database

from samples import user

INSERT = "insert into links values(?, ?)"


async def _link(database: Database, sender: str) -> None:
    await database.write(lambda db: db.execute(INSERT, (sender, "p")).get)


async def _links(database: Database) -> int:
    return int(await database.read(lambda db: db.execute("select count(*) from links").get))


async def test_many_writes_at_once_are_all_kept(tmp_path: Path) -> None:
    database = Database(str(tmp_path / "weft.db"))

    await asyncio.gather(*(_link(database, f"s{n}") for n in range(500)))

    assert await _links(database) == 500
    await database.close()


async def test_a_write_that_fails_in_a_group_takes_no_other_with_it(tmp_path: Path) -> None:
    database = Database(str(tmp_path / "weft.db"))

    def half(db: apsw.Connection) -> None:
        db.execute(INSERT, ("half", "p"))
        raise weft.StoreError("no")

    results = await asyncio.gather(
        database.write(lambda db: db.execute(INSERT, ("a", "p")).get),
        database.write(half),
        database.write(lambda db: db.execute(INSERT, ("b", "p")).get),
        return_exceptions=True,
    )

    assert isinstance(results[1], weft.StoreError)
    assert await database.read(lambda db: [row[0] for row in db.execute("select sender from links")]) == [
        "a",
        "b",
    ]
    await database.close()


async def test_reads_of_one_moment_share_a_thread_and_each_gets_its_own_result(
    tmp_path: Path,
) -> None:
    database = Database(str(tmp_path / "weft.db"))

    def where(number: int) -> tuple[int, int]:
        if number == 2:
            raise weft.StoreError("no")
        return number, threading.get_ident()

    readers = [asyncio.ensure_future(database.read(lambda _, n=n: where(n))) for n in range(5)]  # type: ignore[misc]
    await asyncio.sleep(0)
    readers[3].cancel()
    results = await asyncio.gather(*readers, return_exceptions=True)
    await database.close()

    assert isinstance(results[2], weft.StoreError)
    assert isinstance(results[3], asyncio.CancelledError)
    told = [result for result in results if isinstance(result, tuple)]
    assert [number for number, _ in told] == [0, 1, 4]
    assert len({thread for _, thread in told}) == 1


async def test_a_read_for_which_no_thread_can_be_started_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = Database(str(tmp_path / "weft.db"))

    def refuse(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(asyncio.get_running_loop(), "run_in_executor", refuse)
        with pytest.raises(RuntimeError):
            await asyncio.wait_for(_links(database), 30)
    await database.close()


async def test_a_read_from_before_the_store_was_closed_is_still_answered(tmp_path: Path) -> None:
    database = Database(str(tmp_path / "weft.db"))
    await _link(database, "a")

    asked = asyncio.ensure_future(_links(database))
    await asyncio.sleep(0)
    await database.close()

    assert await asked == 1


async def test_a_copy_of_the_file_and_its_wal_holds_everything_acknowledged(tmp_path: Path) -> None:
    path = tmp_path / "weft.db"
    store = SqliteBackend(str(path))
    session = await store.sessions.new("a", "b", "c")
    await store.messages.append(session.id, user("kept"))

    for end in ("", "-wal"):
        shutil.copy(f"{path}{end}", tmp_path / f"copy.db{end}")

    copied = SqliteBackend(str(tmp_path / "copy.db"))
    assert [m.content for m in await copied.messages.all(session.id)] == ["kept"]
    assert await copied.check() == []
    await copied.close()
    await store.close()


async def test_when_the_store_is_closed_everything_is_in_the_one_file(tmp_path: Path) -> None:
    async with await weft.open(tmp_path / "weft.db") as store:
        await store.facts.set("a:b", "city", "Lisbon")
        await store.facts.list("a:b")

    assert os.listdir(tmp_path) == ["weft.db"]


async def test_only_the_owner_may_read_the_file_and_the_folder_that_was_made_for_it(tmp_path: Path) -> None:
    path = tmp_path / "new" / "weft.db"
    async with await weft.open(path) as store:
        await store.facts.set("a:b", "city", "Lisbon")

        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}

    assert modes == {"weft.db": 0o600, "weft.db-wal": 0o600, "weft.db-shm": 0o600}
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


async def test_a_closed_store_says_so(tmp_path: Path) -> None:
    database = Database(str(tmp_path / "weft.db"))
    await database.close()
    await database.close()

    with pytest.raises(weft.StoreError, match="closed"):
        await database.write(lambda db: None)
    with pytest.raises(weft.StoreError, match="closed"):
        await database.read(lambda db: None)


def test_a_file_that_is_no_database_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("my notes " * 200, "utf-8")

    with pytest.raises(weft.StoreError, match="not a Weft store"):
        Database(str(path))

    assert path.read_text("utf-8") == "my notes " * 200


def test_another_programs_database_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as other:
        other.execute("create table theirs(x)")
    other.close()

    with pytest.raises(weft.StoreError, match="another program"):
        Database(str(path))

    with sqlite3.connect(path) as other:
        assert other.execute("select name from sqlite_schema").fetchall() == [("theirs",)]
    other.close()


async def test_a_file_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    path = str(tmp_path / "weft.db")
    database = Database(path)
    await database.write(lambda db: db.execute("insert into migrations(number) values(99)").get)
    await database.close()

    with pytest.raises(weft.StoreError, match="newer version"):
        Database(path)


async def test_a_full_disk_loses_nothing_that_was_there(tmp_path: Path) -> None:
    store = SqliteBackend(str(tmp_path / "weft.db"))
    session = await store.sessions.new("a", "b", "c")
    await store.messages.append(session.id, user("before"))
    pages = await store.database.read(lambda db: db.pragma("page_count"))
    await store.database.write(lambda db: db.pragma("max_page_count", pages + 2))

    with pytest.raises(weft.StoreError, match="full"):
        await store.messages.append(session.id, user("x" * 1_000_000))

    assert [m.content for m in await store.messages.all(session.id)] == ["before"]
    assert await store.check() == []
    await store.close()


async def test_a_file_that_another_program_holds_is_said_to_be_in_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_module, "BUSY_SECONDS", 0.05)
    database = Database(str(tmp_path / "weft.db"))
    holder = apsw.Connection(str(tmp_path / "weft.db"))
    holder.execute("begin immediate")

    with pytest.raises(weft.StoreError, match="in use"):
        await database.write(lambda db: db.execute(INSERT, ("a", "p")).get)
    holder.execute("rollback")
    await database.write(lambda db: db.execute(INSERT, ("b", "p")).get)

    assert await _links(database) == 1
    holder.close()
    await database.close()


def test_a_folder_that_does_not_exist_is_made(tmp_path: Path) -> None:
    Database(str(tmp_path / "new" / "folder" / "weft.db"))

    assert (tmp_path / "new" / "folder" / "weft.db").exists()


@pytest.mark.parametrize("place", ["file/weft.db", "."])
def test_a_place_that_cannot_hold_a_file_is_one_sentence(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("x", "utf-8")

    with pytest.raises(weft.StoreError, match="cannot be"):
        Database(str(tmp_path / place))


def test_a_file_that_may_only_be_read_says_so_and_stays_as_it_was() -> None:
    """Whoever runs the tests may be allowed everything, so a child gives its rights away first."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "weft.db"
        asyncio.run(_filled(path))
        before = path.read_bytes()
        path.chmod(0o444)
        Path(folder).chmod(0o555)
        done = subprocess.run(
            [sys.executable, "-c", WRITE, str(path)], capture_output=True, text=True, timeout=60, check=False
        )
        Path(folder).chmod(0o755)

        assert "StoreError" in done.stdout, done.stderr
        assert "Traceback" not in done.stderr
        assert path.read_bytes() == before


WRITE = """
import asyncio, os, sys, weft

async def write(path):
    async with await weft.open(path) as store:
        await store.facts.set("a:b", "city", "Rome")

async def main():
    await write(":memory:")
    if os.geteuid() == 0:
        os.setuid(65534)
    try:
        await write(sys.argv[1])
    except weft.StoreError as error:
        print("StoreError", error)

asyncio.run(main())
"""


async def _filled(path: Path) -> None:
    async with await weft.open(path) as store:
        await store.facts.set("a:b", "city", "Lisbon")


async def test_a_write_to_a_store_that_cannot_be_written_says_what_to_do(tmp_path: Path) -> None:
    database = Database(str(tmp_path / "weft.db"))
    await database.write(lambda db: db.pragma("query_only", True))

    with pytest.raises(weft.StoreError, match="cannot be written to: check its permissions"):
        await database.write(lambda db: db.execute(INSERT, ("a", "p")).get)

    await database.close()


ENDLESS = "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n"


async def test_a_read_that_nobody_waits_for_is_stopped_and_others_of_its_moment_are_done(
    tmp_path: Path,
) -> None:
    database = Database(str(tmp_path / "weft.db"))
    began, loop = asyncio.Event(), asyncio.get_running_loop()

    def endless(db: apsw.Connection) -> object:
        loop.call_soon_threadsafe(began.set)
        return db.execute(ENDLESS).get

    reading = asyncio.create_task(database.read(endless))
    beside = asyncio.create_task(_links(database))
    await began.wait()
    reading.cancel()

    assert await asyncio.wait_for(beside, 30) == 0
    assert reading.cancelled()
    assert await asyncio.wait_for(_links(database), 30) == 0
    await asyncio.wait_for(database.close(), 30)


@pytest.mark.parametrize("name", ["weft.db", "weft.db-wal"])
@pytest.mark.parametrize("is_replaced", [True, False])
async def test_a_file_that_was_deleted_or_replaced_is_noticed_before_the_next_write_is_acknowledged(
    tmp_path: Path, name: str, is_replaced: bool
) -> None:
    path = tmp_path / "weft.db"
    database = Database(str(path))
    await _link(database, "before")

    (tmp_path / name).rename(tmp_path / "away")
    if is_replaced:
        shutil.copy(tmp_path / "away", tmp_path / name)
    for sender in ("after", "again"):
        with pytest.raises(weft.StoreError, match=r"was deleted or replaced .* start Weft again"):
            await _link(database, sender)
    (tmp_path / "away").replace(tmp_path / name)
    await _link(database, "back")

    assert await _links(database) == 2, "only what was acknowledged is there"
    await database.close()


async def test_a_file_that_is_deleted_during_a_write_is_noticed_too(tmp_path: Path) -> None:
    database = Database(str(tmp_path / "weft.db"))

    with pytest.raises(weft.StoreError, match="was deleted or replaced"):
        await database.write(lambda _: (tmp_path / "weft.db").unlink())
    await database.close()
