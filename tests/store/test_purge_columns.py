"""A purge follows the description of the tables: no column that can hold text from outside is forgotten."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw

import weft
from weft.store.sqlite.backend import SqliteBackend
from weft.store.sqlite.schema import Column, Holds, Table
from weft.store.sqlite.tables import TABLES
from weft.types.secret import fingerprint

from samples import all_bytes

MARKER = "Qx7-marker"
MARK = f"[purged:{fingerprint(MARKER)}]"
BLOCK = (Holds.BLOCK, Holds.INDEX)


def _value(table: Table, column: Column, number: int) -> Any:
    """Return a value for a column of one row: with the marker in it, wherever text from outside can be."""
    if column.holds in (Holds.TEXT, Holds.EXCERPT, Holds.NAME) and not column.is_bytes:
        return f"a {MARKER} b"
    if column.holds == Holds.NAMES:
        return json.dumps([f"a {MARKER} b"])
    if column.holds == Holds.JSON:
        inner = json.dumps({"deep": [MARKER], MARKER: 1}).replace("Q", "\\u0051")
        return json.dumps({"b": inner, "a": {MARKER: [f"x{MARKER}"]}})
    if column.is_bytes or column.sql.startswith("blob"):
        return b"\x00"
    if column.sql.startswith("text"):
        return "code"
    return float(number) if column.sql.startswith("real") else number


def _plant(db: apsw.Connection) -> None:
    for table in TABLES:
        if table.virtual or table.name in ("migrations", "items", "vectors", "vector_signs"):
            continue
        columns = [column for column in table.columns if column.holds not in BLOCK or column.is_bytes]
        values = [1 if "check (id = 1)" in one.sql else _value(table, one, 1) for one in columns]
        marks = ", ".join("?" * len(values))
        names = ", ".join(column.name for column in columns)
        db.execute(f"insert into {table.name}({names}) values({marks})", values)
    # What is derived follows what it is derived from.
    owner = f"a {MARKER} b"
    for source in ("message", "block", "archival"):
        ref = "1" if source == "message" else owner
        row = (source, ref, owner, owner, owner)
        db.execute(
            "insert into items(source, ref, agent_id, sender, session_id, at) values(?,?,?,?,?,1)", row
        )
        db.execute(
            "insert into items_fts(rowid, text, scope) values(?, ?, 'o')", (db.last_insert_rowid(), owner)
        )


async def test_a_marker_in_every_column_is_nowhere_after_a_purge(tmp_path: Path) -> None:
    backend = SqliteBackend(str(tmp_path / "weft.db"))

    def work(db: apsw.Connection) -> None:
        db.execute("pragma defer_foreign_keys = on")
        _plant(db)

    await backend.database.write(work)
    assert MARKER.encode() in all_bytes(tmp_path)

    await backend.begin_purge(MARKER)
    places = await backend.purge(MARKER, [])

    assert places > 90
    content = await backend.database.read(_everything)
    assert MARKER not in content
    assert "Qx7" not in content
    assert MARK in content
    assert await backend.check() == [], "references between the tables hold"
    assert MARKER.encode() not in all_bytes(tmp_path), "also in the -wal"
    await backend.close()
    assert MARKER.encode() not in all_bytes(tmp_path)


async def test_a_text_that_is_purged_twice_gets_two_marks_so_that_names_do_not_clash(
    tmp_path: Path, sql: Callable[..., Any]
) -> None:
    async with await weft.open(tmp_path / "weft.db") as store:
        for _ in range(2):
            await store.sessions.new("telegram", "chat", MARKER, session_id=f"telegram-{MARKER}")
            await store.auth.confirm_pairing(await store.auth.offer_pairing("telegram", MARKER))
            await store.facts.set(f"telegram:{MARKER}", "city", "Lisbon")
            await store.purge(MARKER)
            sql("delete from purges")

        people = {person.name for person in await store.people.list()}
        sessions = {session.id for session in await store.sessions.list()}
        assert await store.check() == []

    second = MARK.replace("]", "-2]")
    assert {f"telegram:{MARK}", f"telegram:{second}"} <= people
    assert sessions == {f"telegram-{MARK}", f"telegram-{second}"}


async def test_a_purge_leaves_the_words_of_weft_itself_in_names(tmp_path: Path) -> None:
    async with await weft.open(tmp_path / "weft.db") as store:
        session = await store.sessions.new("terminal", "c", "owner", agent_id="weft")
        await store.messages.append(session.id, weft.Message(role="user", content="I am the owner of weft"))
        await store.memory.create_block("weft", "notes")
        for word in ("weft", "owner", "user", "terminal", "e"):
            await store.purge(word)

        [message] = await store.messages.all(session.id)
        assert [info.label for info in await store.memory.list_blocks("weft")] == ["notes"]
        assert (await store.sessions.find_or_create("terminal", "c", "owner")).id == session.id
        assert message.role == "user"
        assert "owner" not in message.content


def _everything(db: apsw.Connection) -> str:
    tables = [table for table in TABLES if not table.virtual]
    return repr([list(db.execute(f"select * from {table.name}")) for table in tables])  # noqa: S608
