"""A backup under load is complete and whole; a restore loses nothing and never runs under a program."""

import asyncio
import os
import stat
import subprocess
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path

import apsw
import pytest

import weft
from weft.compose import restore

ROUNDS = int(os.environ.get("WEFT_BACKUP_ROUNDS", "12"))
WRITERS = 6 if ROUNDS >= 100 else 3
WRITER = Path(__file__).parent / "crash_writer.py"


class _Writer:
    """A process that writes, and the newest number of each kind that it said is written."""

    def __init__(self, path: Path, name: str) -> None:
        self.name, self.session = name, ""
        self.newest = {"turn": 0, "fact": 0, "block": 0}
        self.process = subprocess.Popen(
            [sys.executable, str(WRITER), str(path), name], stdout=subprocess.PIPE, text=True
        )
        self.wrote = threading.Event()
        self._thread = threading.Thread(target=self._listen)
        self._thread.start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            kind, _, rest = line.strip().partition(" ")
            if kind == "session":
                self.session = rest
            elif rest.isdigit():
                self.newest = {**self.newest, kind: int(rest)}
                if kind == "block":
                    self.wrote.set()

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()
        self._thread.join()
        assert self.process.stdout is not None
        self.process.stdout.close()


async def _check(path: Path, writer: _Writer, newest: dict[str, int]) -> None:
    async with await weft.open(path) as store:
        messages = [message.content for message in await store.messages.all(writer.session)]
        text = await store.memory.get_rendered_content("iris", writer.name) or ""
        fact = await store.facts.get("crash:42", f"{writer.name} key")
        assert await store.check() == []
    assert messages == [
        f"{kind} {n}" for n in range(1, len(messages) // 2 + 1) for kind in ("question", "answer")
    ]
    assert len(messages) // 2 >= newest["turn"] > 0
    assert int(fact.split()[-1]) >= newest["fact"]
    lines = text.splitlines()
    assert len(lines) >= newest["block"]
    assert lines == [f"line {n}" for n in range(1, len(lines) + 1)]


async def test_copies_made_while_processes_write_are_complete_up_to_their_moment_and_whole(
    tmp_path: Path,
) -> None:
    path, copy = tmp_path / "weft.db", tmp_path / "copy.db"
    writers = [_Writer(path, f"writer {number}") for number in range(WRITERS)]
    try:
        for writer in writers:
            assert await asyncio.to_thread(writer.wrote.wait, 60)
        async with await weft.open(path) as store:
            for _ in range(ROUNDS):
                before = [writer.newest for writer in writers]
                await store.backup(copy)
                for writer, newest in zip(writers, before, strict=True):
                    await _check(copy, writer, newest)
                copy.unlink()
    finally:
        for writer in writers:
            writer.stop()

    assert all(writer.newest["turn"] > 1 for writer in writers), "they went on"


async def _filled(path: Path, city: str) -> None:
    async with await weft.open(path) as store:
        await store.facts.set("a:b", "city", city)


async def _make_large(store: weft.Store) -> None:
    """Fill a store with so much that a backup takes more than one step."""
    session = await store.sessions.new("a", "b", "c")
    await store.messages.append(session.id, weft.Message(role="user", content="x" * 3_000_000))


async def _city(path: Path) -> str | None:
    async with await weft.open(path) as store:
        return await store.facts.find("a:b", "city")


async def test_a_backup_is_one_private_file_and_nothing_else_is_left(tmp_path: Path) -> None:
    async with await weft.open(tmp_path / "weft.db") as store:
        await store.facts.set("a:b", "city", "Lisbon")

        size = await store.backup(tmp_path / "new" / "copy.db")

    copy = tmp_path / "new" / "copy.db"
    assert os.listdir(copy.parent) == ["copy.db"]
    assert (stat.S_IMODE(copy.stat().st_mode), stat.S_IMODE(copy.parent.stat().st_mode)) == (0o600, 0o700)
    assert copy.stat().st_size == size > 0
    assert await _city(copy) == "Lisbon"


async def test_a_write_after_a_backup_began_is_not_in_the_copy(tmp_path: Path) -> None:
    path = tmp_path / "weft.db"
    await _filled(path, "Lisbon")
    other, steps = apsw.Connection(str(path)), []

    def write_meanwhile(done: int, total: int) -> None:
        other.execute("update facts set value = 'Rome'")
        steps.append(done)
        assert len(steps) < 100, "a write starts the copy again and again"

    async with await weft.open(path) as store:
        await _make_large(store)
        await store.backup(tmp_path / "copy.db", progress=write_meanwhile)

    other.close()
    assert len(steps) > 1
    assert (await _city(path), await _city(tmp_path / "copy.db")) == ("Rome", "Lisbon")


async def test_a_backup_overwrites_nothing(tmp_path: Path) -> None:
    (tmp_path / "copy.db").write_text("mine", "utf-8")

    async with await weft.open(tmp_path / "weft.db") as store:
        with pytest.raises(weft.ConfigError, match="overwrites nothing: name a new file"):
            await store.backup(tmp_path / "copy.db")

    assert (tmp_path / "copy.db").read_text("utf-8") == "mine"


async def test_a_copy_that_fails_the_check_gets_no_name(tmp_path: Path) -> None:
    path = tmp_path / "weft.db"
    async with await weft.open(path) as store:
        await store.facts.set("a:b", "city", "Lisbon")
        broken = apsw.Connection(str(path))
        broken.execute("insert into bindings values('a', 'b', 'c', 'no such session')")
        broken.close()

        with pytest.raises(weft.StoreError, match="The copy is damaged"):
            await store.backup(tmp_path / "copy.db")
        status = await store.backup_status()

    assert sorted(os.listdir(tmp_path)) == ["weft.db"]
    assert status.at is None, "only a good backup is recorded"


async def test_a_backup_that_is_cancelled_leaves_nothing_behind(tmp_path: Path) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def wait(done: int, total: int) -> None:
        begun.set()
        assert go_on.wait(60)

    async with await weft.open(tmp_path / "weft.db") as store:
        await _make_large(store)
        task = asyncio.ensure_future(store.backup(tmp_path / "copy.db", progress=wait))
        await asyncio.to_thread(begun.wait, 60)
        task.cancel()
        await asyncio.sleep(0)
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task

        assert not [name for name in os.listdir(tmp_path) if "copy" in name]


async def test_the_time_and_place_of_the_newest_backup_are_known(tmp_path: Path) -> None:
    async with await weft.open(tmp_path / "weft.db") as store:
        started = datetime.now(UTC)
        await store.backup(tmp_path / "first.db")
        await store.backup(tmp_path / "second.db")
        status = await store.backup_status()

    assert status.at is not None
    assert status.at >= started
    assert (status.path, status.has_messages) == (str(tmp_path / "second.db"), False)


async def test_a_restore_brings_back_the_backup_and_keeps_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "weft.db"
    await _filled(path, "Lisbon")
    async with await weft.open(path) as store:
        await store.backup(tmp_path / "copy.db")
    await _filled(path, "Rome")

    old = await restore(path, tmp_path / "copy.db")

    assert old is not None
    assert await _city(path) == "Lisbon"
    assert await _city(old) == "Rome"
    assert await _city(tmp_path / "copy.db") == "Lisbon", "the backup stays"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_a_restore_keeps_the_wal_of_the_old_database(tmp_path: Path) -> None:
    path = tmp_path / "weft.db"
    await _filled(path, "Lisbon")
    async with await weft.open(path) as store:
        await store.backup(tmp_path / "copy.db")
    writer = _Writer(path, "killed")
    assert await asyncio.to_thread(writer.wrote.wait, 60)
    writer.stop()
    assert (await asyncio.to_thread(os.stat, f"{path}-wal")).st_size > 0

    old = await restore(path, tmp_path / "copy.db")

    assert old is not None
    await _check(old, writer, writer.newest)
    async with await weft.open(path) as store:
        assert await store.messages.all(writer.session) == []
        assert await store.check() == []


@pytest.mark.parametrize("in_this_process", [True, False])
async def test_nothing_is_restored_while_the_database_is_open(tmp_path: Path, in_this_process: bool) -> None:
    path = tmp_path / "weft.db"
    await _filled(path, "Lisbon")
    async with await weft.open(path) as store:
        await store.backup(tmp_path / "copy.db")
        writer = None if in_this_process else _Writer(path, "busy")
        if writer is not None:
            assert await asyncio.to_thread(writer.wrote.wait, 60)
            await store.close()
        try:
            with pytest.raises(weft.StoreError, match="open in a program: stop `weft serve`"):
                await restore(path, tmp_path / "copy.db")
        finally:
            if writer is not None:
                writer.stop()

    names = os.listdir(tmp_path)
    assert not [name for name in names if "restore" in name or "part" in name]
    assert await _city(path) == "Lisbon"


async def test_a_damaged_database_is_replaced_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "weft.db"
    await _filled(path, "Lisbon")
    async with await weft.open(path) as store:
        await store.backup(tmp_path / "copy.db")
    path.write_bytes(b"no database at all" * 1000)

    old = await restore(path, tmp_path / "copy.db")

    assert old is not None
    assert old.read_bytes() == b"no database at all" * 1000
    assert await _city(path) == "Lisbon"


async def test_a_backup_is_restored_where_there_is_no_database(tmp_path: Path) -> None:
    await _filled(tmp_path / "weft.db", "Lisbon")
    async with await weft.open(tmp_path / "weft.db") as store:
        await store.backup(tmp_path / "copy.db")

    assert await restore(tmp_path / "new" / "weft.db", tmp_path / "copy.db") is None

    assert await _city(tmp_path / "new" / "weft.db") == "Lisbon"


@pytest.mark.parametrize("content", [b"", b"my notes" * 500], ids=["empty", "text"])
async def test_a_file_that_is_no_backup_changes_nothing(tmp_path: Path, content: bytes) -> None:
    await _filled(tmp_path / "weft.db", "Lisbon")
    (tmp_path / "notes").write_bytes(content)

    with pytest.raises(weft.StoreError, match="not a Weft store"):
        await restore(tmp_path / "weft.db", tmp_path / "notes")

    assert sorted(os.listdir(tmp_path)) == ["notes", "weft.db"]
    assert await _city(tmp_path / "weft.db") == "Lisbon"


async def test_a_damaged_backup_changes_nothing(tmp_path: Path) -> None:
    path, copy = tmp_path / "weft.db", tmp_path / "copy.db"
    await _filled(path, "Lisbon")
    async with await weft.open(path) as store:
        await store.backup(copy)
    with copy.open("r+b") as file:
        file.seek(4096 * 10)
        file.write(b"\xff" * 4096 * 30)

    with pytest.raises(weft.StoreError, match="damaged"):
        await restore(path, copy)

    assert sorted(os.listdir(tmp_path)) == ["copy.db", "weft.db"]
    assert await _city(path) == "Lisbon"


@pytest.mark.parametrize("name", ["nothing.db", "weft.db", "."])
async def test_a_path_that_is_no_backup_is_refused_and_changes_nothing(tmp_path: Path, name: str) -> None:
    await _filled(tmp_path / "weft.db", "Lisbon")

    with pytest.raises(weft.ConfigError, match="name a file that `weft backup` wrote"):
        await restore(tmp_path / "weft.db", tmp_path / name)

    assert os.listdir(tmp_path) == ["weft.db"]
    assert await _city(tmp_path / "weft.db") == "Lisbon"
