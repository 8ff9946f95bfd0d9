"""One description of the tables creates, exports, imports and purges: no column can be forgotten."""

import re
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import apsw
import pytest

import weft
from weft.store.sqlite import migrations
from weft.store.sqlite.backend import SqliteBackend
from weft.store.sqlite.database import Database
from weft.store.sqlite.schema import Column, Holds
from weft.store.sqlite.tables import TABLES

SOURCE = Path(weft.__file__).parent / "store" / "sqlite"


OLD_ROWS = """
insert into facts(person, key, value, created_at, ended_at) values('owner', 'city', 'Porto', 1, 2)
insert into facts(person, key, value, created_at) values('owner', 'city', 'Lisbon', 2)
insert into sessions(id, channel, conversation, sender, created_at, active_at) values('new', 'a', 'b', 'c', 1, 9)
insert into sessions(id, channel, conversation, sender, created_at, active_at) values('old', 'a', 'd', 'c', 1, 2)
insert into turns(id, session_id, state, created_at) values('t', 'old', 'failed', 1)
insert into inbox(id, channel, external_id, conversation, sender, name, kind, state, created_at) values('second', 'a', '', 'b', 'c', '', 'text', 'new', 2)
insert into inbox(id, channel, external_id, conversation, sender, name, kind, state, created_at) values('first', 'a', '', 'b', 'c', '', 'text', 'new', 1)
insert into tasks(id, sender, text, repeat, action, status, created_at) values('t', 'terminal:owner', 'swim', 'once', 'reminder', 'pending', 1)
insert into models(model, ratio, window) values('ollama:small', 1.5, 9000)
insert into models(model, ratio) values('small', 1.5)
insert into blocks(id, agent_id, label, description, block_type, permission, schema, char_limit, pinned, created_at, updated_at) values('b', 'weft', 'notes', '', 'working', 'ReadWrite', '{"kind": "text"}', 100, 1, 1, 1)
"""  # noqa: E501


def _indexes(path: Path) -> set[tuple[str, str]]:
    with closing(apsw.Connection(str(path))) as db:
        query = "select name, sql from sqlite_schema where type = 'index' and sql is not null"
        return {(str(name), str(sql).lower()) for name, sql in db.execute(query)}


def _columns(path: Path) -> dict[str, list[str]]:
    """Read the columns of all tables of a file; those that SQLite keeps for a virtual table are its own."""
    db = apsw.Connection(str(path))
    tables = [
        str(name)
        for schema, name, kind, *_ in db.execute("pragma table_list")
        if schema == "main" and kind in ("table", "virtual") and not str(name).startswith("sqlite_")
    ]
    columns = {table: [str(row[1]) for row in db.execute(f"pragma table_info({table})")] for table in tables}
    db.close()
    return columns


async def test_every_column_of_the_database_is_described(tmp_path: Path) -> None:
    async with await weft.open(tmp_path / "weft.db"):
        pass

    described = {table.name: [column.name for column in table.columns] for table in TABLES}

    assert _columns(tmp_path / "weft.db") == described


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_every_column_of_text_or_bytes_says_what_it_holds_and_so_what_a_purge_does(table: object) -> None:
    assert isinstance(table, type(TABLES[0]))

    undeclared = [
        column.name
        for column in table.columns
        if (column.sql.startswith(("text", "blob")) or table.virtual) and column.holds == Holds.NUMBER
    ]

    assert undeclared == []


def test_only_what_is_derived_secret_or_local_is_not_exported() -> None:
    left_out = {
        f"{table.name}.{column.name}": table.left_out or column.left_out
        for table in TABLES
        for column in table.columns
        if column not in table.exported
    }

    assert {name.partition(".")[0]: why for name, why in left_out.items()} == {
        "forgets": "local",
        "auth_codes": "secret",
        "items": "derived",
        "items_fts": "derived",
        "embedders": "derived",
        "vectors": "derived",
        "vector_signs": "derived",
        "migrations": "local",
        "backups": "local",
    }


def test_every_insert_names_its_columns_so_that_a_new_one_does_not_break_it() -> None:
    unnamed = [
        path.name
        for path in SOURCE.glob("*.py")
        if re.search(r"into \w+ (values|select)", path.read_text("utf-8"))
    ]

    assert unnamed == []


async def test_a_column_that_is_added_to_the_description_needs_no_other_edit(tmp_path: Path) -> None:
    mood = Column("mood", "text not null default 'calm'", Holds.TEXT)
    why = Column("why", "text", Holds.JSON)
    photo = Column("photo", "blob", Holds.NAME)
    tables = [
        replace(table, columns=(*table.columns, mood, why, photo)) if table.name == "facts" else table
        for table in TABLES
    ]
    values = ("hunter2 and joy", '["hunter2"]', b"\x00\xff")
    query = "select mood, why, photo from facts order by id"

    first = SqliteBackend(str(tmp_path / "first.db"), tables)
    await first.facts.set("a:b", "city", "Lisbon")
    await first.facts.set("a:b", "pet", "none")
    change = "update facts set mood = ?, why = ?, photo = ? where key = 'city'"
    await first.database.write(lambda db: db.execute(change, values).get)
    await first.export(tmp_path / "out")
    second = SqliteBackend(str(tmp_path / "second.db"), tables)
    await second.restore_export(tmp_path / "out")
    imported = await second.database.read(lambda db: [*db.execute(query)])
    places = await second.purge("hunter2", [])
    purged = await second.database.read(lambda db: [*db.execute(query)])
    await first.close()
    await second.close()

    assert "mood" in _columns(tmp_path / "first.db")["facts"]
    assert imported == [values, ("calm", None, None)]
    assert places == 2
    assert "hunter2" not in str(purged)
    assert purged[0][2] == b"\x00\xff"


def _add_mood(db: apsw.Connection) -> None:
    db.execute("alter table facts add column mood text not null default 'calm'")


def _fail(db: apsw.Connection) -> None:
    db.execute("create table half(done)")
    raise weft.StoreError("no")


async def _versions(path: Path) -> list[tuple[int, str]]:
    database = Database(str(path))
    rows = await database.read(lambda db: [*db.execute("select number, name from migrations")])
    await database.close()
    return [(int(number), str(name)) for number, name in rows]


async def test_an_older_file_is_brought_up_to_date_once_by_the_steps_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "weft.db"
    async with await weft.open(path) as store:
        await store.facts.set("a:b", "city", "Lisbon")
    known = await _versions(path)

    monkeypatch.setattr(migrations, "STEPS", (*migrations.STEPS, _add_mood))

    newer = [*known, (len(known) + 1, "_add_mood")]
    assert await _versions(path) == await _versions(path) == newer
    assert "mood" in _columns(path)["facts"]
    async with await weft.open(path) as store:
        assert await store.facts.get("a:b", "city") == "Lisbon"


async def test_a_file_of_the_first_version_has_every_column_after_its_steps(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    with closing(apsw.Connection(str(path))) as db:
        db.execute((Path(__file__).parent / "version_1.sql").read_text("utf-8"))
        db.pragma("application_id", migrations.APPLICATION_ID)
        db.execute("insert into migrations(number, name, at) values(1, 'm001_start', 0)")
        for statement in OLD_ROWS.strip().splitlines():
            db.execute(statement)

    async with await weft.open(path) as store:
        assert [fact.value for fact in await store.facts.history("terminal:owner", "city")] == [
            "Porto",
            "Lisbon",
        ]
        assert await store.facts.undo("terminal:owner", "city") == "Porto"
        assert await store.memory.get_rendered_content("weft", "notes") == "", "an old block is the owner's"
        assert [session.id for session in await store.sessions.list()] == ["new", "old"]
        assert [waiting.id for waiting in await store.mailbox.list_waiting()] == ["first", "second"]
        assert (await store.tasks.list("terminal:owner"))[0].text == "swim"
        assert await store.turns.list("old") == []
        assert await store.turns.find_window("ollama:small") == 9000
        assert await store.turns.find_ratios("small", "exact") == {}, "nobody knows of which script it was"
    await _versions(tmp_path / "new.db")
    assert _columns(path) == _columns(tmp_path / "new.db")
    assert _indexes(path) == _indexes(tmp_path / "new.db")


async def test_a_new_file_begins_at_the_newest_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrations, "STEPS", (_fail,))

    assert await _versions(tmp_path / "weft.db") == [(1, "m001_start"), (2, "_fail")]


async def test_a_step_that_fails_leaves_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "weft.db"
    known = await _versions(path)

    with monkeypatch.context() as patch:
        patch.setattr(migrations, "STEPS", (*migrations.STEPS, _add_mood, _fail))
        with pytest.raises(weft.StoreError, match="no"):
            Database(str(path))

    assert await _versions(path) == known
    assert "mood" not in _columns(path)["facts"]
    assert "half" not in _columns(path)
