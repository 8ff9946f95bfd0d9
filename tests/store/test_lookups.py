"""Short reads are done in the loop; long ones are handed to a thread, and nobody starves."""

import asyncio
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import apsw
import pytest

import weft
from weft.store.sqlite.database import Database

LONG = "with recursive n(x) as (select 1 union all select x + 1 from n where x < ?) select count(*) from n"


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = Database(str(tmp_path / "weft.db"))
    yield opened
    asyncio.run(opened.close())


def _insert(db: apsw.Connection, values: tuple[str, str]) -> None:
    db.execute("insert into links values(?, ?)", values)


def threads(database: Database, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Note what is handed to a thread."""
    handed = list[object]()
    read = database.read

    async def noted(work: object) -> object:
        handed.append(work)
        return await read(work)  # type: ignore[arg-type]

    monkeypatch.setattr(database, "read", noted)
    return handed


async def test_a_short_lookup_needs_no_thread(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    handed = threads(database, monkeypatch)

    assert await database.lookup(lambda db: db.execute(LONG, (3,)).get) == 3

    assert handed == []


async def test_a_long_one_is_begun_again_by_a_thread(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    handed = threads(database, monkeypatch)

    assert await database.lookup(lambda db: db.execute(LONG, (200_000,)).get) == 200_000

    assert len(handed) == 1


async def test_one_that_makes_much_of_its_rows_is_handed_over_too(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    handed = threads(database, monkeypatch)
    query = LONG.replace("count(*)", "x")

    rows = await database.lookup(lambda db: [str(row) for row in db.execute(query, (50_000,))])

    assert len(rows) == 50_000
    assert len(handed) == 1


async def test_a_lookup_sees_what_was_written_before(database: Database) -> None:
    for number in range(20):
        values = (str(number), "p")
        await database.write(partial(_insert, values=values))
        assert await database.lookup(lambda db: db.execute("select count(*) from links").get) == number + 1


async def test_a_task_that_only_looks_up_lets_others_run(database: Database) -> None:
    ended = asyncio.Event()

    async def poll() -> None:
        while not ended.is_set():
            await database.lookup(lambda db: db.execute("select 1").get)

    polling = asyncio.create_task(poll())
    for _ in range(10):
        await asyncio.sleep(0)
    ended.set()
    await asyncio.wait_for(polling, 10)


async def test_an_error_of_the_query_is_one_of_ours(database: Database) -> None:
    with pytest.raises(weft.StoreError, match="no such table"):
        await database.lookup(lambda db: db.execute("select * from no_table").get)


async def test_a_closed_store_says_so(tmp_path: Path) -> None:
    database = Database(str(tmp_path / "other.db"))
    await database.lookup(lambda db: db.execute("select 1").get)
    await database.close()

    with pytest.raises(weft.StoreError, match="closed"):
        await database.lookup(lambda db: db.execute("select 1").get)


async def test_a_lookup_cannot_write(database: Database) -> None:
    with pytest.raises(weft.StoreError):
        await database.lookup(lambda db: db.execute("insert into links values('a', 'p')").get)

    assert apsw.Connection(database.path).execute("select count(*) from links").get == 0
