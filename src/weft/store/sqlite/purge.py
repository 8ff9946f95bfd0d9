"""Purging: a text is overwritten, or a session deleted, wherever it is stored; its fingerprint stays.

The log is never rewritten but for this. A mark with the fingerprint takes the text's place in every column
that may hold text from outside, names among them, so that a reader knows that something is missing. What a
column holds is in its description. Blocks come masked from the memory, with all their changes, because the
store cannot read their content.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any

import apsw

from weft.errors import StoreError
from weft.store.blocks import MaskedBlock
from weft.store.sqlite.contents import delete_unused
from weft.store.sqlite.epochs import forget_epochs
from weft.store.sqlite.guard import forget_old_guards, save_guard, unguarded
from weft.store.sqlite.index import index_text, unindex
from weft.store.sqlite.schema import Column, Holds, Table
from weft.store.sqlite.search import TEXT
from weft.types.codec import dump_json
from weft.types.redaction import Redaction
from weft.types.secret import fingerprint

_OF_SESSION = (
    *("turns", "attachments", "epochs", "folds", "calls", "results", "summaries", "bindings", "messages"),
)
"""The tables with rows of a session, each after those that refer to it."""


def begin_purge(db: apsw.Connection, tables: Sequence[Table], text: str) -> None:
    """Guard a text against writers that have it in memory, before it is looked for."""
    save_guard(db, _redaction(unguarded(db), tables, text), fingerprint(text))


def purge(db: apsw.Connection, tables: Sequence[Table], text: str, blocks: Sequence[MaskedBlock]) -> int:
    db, name = unguarded(db), fingerprint(text)
    redaction = _redaction(db, tables, text)
    db.pragma("secure_delete", True)
    db.pragma("defer_foreign_keys", True)
    for block in blocks:
        _replace(db, block)
    places = len(blocks) + _delete_folds(db, redaction)
    names = _renamed(db, tables, redaction)
    stale = _stale_items(db, redaction, names, [block.block_id for block in blocks])
    for table in tables:
        for column in table.columns:
            places += _overwrite(db, table, column, (redaction, names))
    for item in stale:
        _index_again(db, item)
    db.execute("insert into items_fts(items_fts) values('optimize')")
    forget_epochs(db, "purge")
    save_guard(db, redaction, name)
    db.execute("update purges set places = ? where fingerprint = ?", (places, name))
    forget_old_guards(db, time.time())
    return places


def delete_session(db: apsw.Connection, session_id: str) -> int:
    if db.execute("select 1 from turns where session_id = ? and state = 'running'", (session_id,)).get:
        raise StoreError("A turn runs in this session: try again when it has ended.")
    db.pragma("secure_delete", True)
    refs = [row[0] for row in db.execute("select id from messages where session_id = ?", (session_id,))]
    for ref in refs:
        unindex(db, ("message", ref))
    said = "(select id from messages where session_id = ?)"
    for name in ("facts", "instructions"):
        db.execute(f"update {name} set message_id = null where message_id in {said}", (session_id,))
    turns = "from turns where session_id = ?)"
    requests = f"(select id from requests where turn_id in (select id {turns})"
    db.execute(f"delete from request_items where request_id in {requests}", (session_id,))
    for name in ("requests", "turn_steps"):
        db.execute(f"delete from {name} where turn_id in (select id {turns}", (session_id,))
    for box in ("inbox", "outbox"):
        key = "id" if box == "inbox" else "state = 'sent' and inbox_id"
        db.execute(f"update {box} set text = '' where {key} in (select inbox_id {turns}", (session_id,))
    forget_epochs(db, "delete")
    for name in _OF_SESSION:
        db.execute(f"delete from {name} where session_id = ?", (session_id,))
    db.execute("delete from sessions where id = ?", (session_id,))
    delete_unused(db)
    db.execute("insert into items_fts(items_fts) values('optimize')")
    row = (fingerprint(session_id), time.time(), len(refs))
    db.execute("insert or replace into purges(fingerprint, at, places) values(?, ?, ?)", row)
    return len(refs)


def _redaction(db: apsw.Connection, tables: Sequence[Table], text: str) -> Redaction:
    """Choose a mark that is in no name yet, so that names which differ now differ afterwards."""
    columns = [(table.name, column.name) for table in tables for column in table.columns if _is_name(column)]
    number = 1
    while True:
        redaction = Redaction.of(text, number)
        holds = (f"select exists(select 1 from {table} where instr({name}, ?))" for table, name in columns)
        if not any(db.execute(query, (redaction.mark,)).get for query in holds):
            return redaction
        number += 1


def _is_name(column: Column) -> bool:
    return column.holds == Holds.NAME and not column.is_bytes


def _renamed(db: apsw.Connection, tables: Sequence[Table], redaction: Redaction) -> dict[str, str]:
    """Return the new name of each name that holds the text. It is the same in every table."""
    names = {}
    for table in tables:
        for column in filter(_is_name, table.columns):
            found = f"instr({column.name}, ?) and {column.where}"
            query = f"select distinct {column.name} from {table.name} where {found}"
            for (name,) in db.execute(query, (redaction.text,)):
                names[str(name)] = redaction.in_name(str(name))
    return {old: new for old, new in names.items() if old != new}


def _overwrite(
    db: apsw.Connection, table: Table, column: Column, change: tuple[Redaction, dict[str, str]]
) -> int:
    """Redact one column, as its description says. Returns the number of places."""
    redaction, names = change
    if _is_name(column):
        query = f"update {table.name} set {column.name} = ? where {column.name} = ? and {column.where}"
        return sum(_changes(db, query, (new, old)) for old, new in names.items())
    if column.holds == Holds.NAMES:
        rows = _rows(db, table, column, "")
        redacted = [
            (key, dump_json([names.get(name, name) for name in json.loads(old)])) for key, old in rows
        ]
    elif column.holds in (Holds.TEXT, Holds.JSON, Holds.EXCERPT):
        redact = redaction.in_excerpt if column.holds == Holds.EXCERPT else redaction.in_text
        needle = redaction.needle if column.holds == Holds.TEXT and not redaction.is_json else ""
        rows = _rows(db, table, column, needle)
        redacted = [(key, redact(old)) for key, old in rows]
    else:
        return 0
    key_name = "rowid" if table.has_rowid else column.name
    query = f"update {table.name} set {column.name} = ? where {key_name} = ?"
    changed = [(new, key) for (key, new), (_, old) in zip(redacted, rows, strict=True) if new != old]
    return sum(_changes(db, query, values) for values in changed)


def _rows(db: apsw.Connection, table: Table, column: Column, needle: str) -> list[tuple[Any, str]]:
    """Return the values that may hold the text, each with its key. Escapes begin with a backslash."""
    name, key = column.name, "rowid" if table.has_rowid else column.name
    query = f"select {key}, {name} from {table.name} where {name} is not null"
    if needle:
        query += f" and (instr({name}, ?) or instr({name}, '\\'))"
    return [(key, str(value)) for key, value in db.execute(query, (needle,) if needle else ())]


def _changes(db: apsw.Connection, query: str, values: tuple[Any, ...]) -> int:
    db.execute(query, values)
    return int(db.changes())


def _delete_folds(db: apsw.Connection, redaction: Redaction) -> int:
    """Delete summaries of messages with the text: a model may have put it in words of its own.

    The messages that they stood for are shown again, and summarized anew when needed.
    """
    count = 0
    folded = "exists(select 1 from folds where folds.session_id = messages.session_id and last >= seq)"
    query = f"select session_id, seq, content, coalesce(tool_calls, '') from messages where {folded}"
    for session_id, seq, content, calls in db.execute(query).fetchall():
        if any(redaction.in_text(str(value)) != value for value in (content, calls)):
            delete = "delete from folds where session_id = ? and last >= ?"
            count += _changes(db, delete, (session_id, seq))
    return count


def _replace(db: apsw.Connection, block: MaskedBlock) -> None:
    """Replace all changes so far with the masked snapshot; of each only author, time and kind stay."""
    if db.execute("select version from blocks where id = ?", (block.block_id,)).get != block.seq:
        raise StoreError("A block was changed meanwhile, so nothing was purged: try again.")
    seq = block.seq
    if block.start_again is None:
        db.execute("update block_updates set blob = x'' where block_id = ?", (block.block_id,))
    else:
        db.execute("delete from block_updates where block_id = ?", (block.block_id,))
        seq = db.execute(
            "insert into block_updates(block_id, kind, blob, before, after, author, at) "
            "values(?, 'edit', x'', ?, ?, 'system', ?) returning seq",
            (block.block_id, block.start_again, block.start_again, time.time()),
        ).get
    db.execute(
        "insert or replace into block_snapshots(block_id, seq, blob) values(?, ?, ?)",
        (block.block_id, seq, block.snapshot),
    )
    db.execute(
        "update blocks set rendered = ?, version = ?, rendered_version = ?, epoch = epoch + 1 where id = ?",
        (block.rendered, seq, seq, block.block_id),
    )


def _stale_items(
    db: apsw.Connection, redaction: Redaction, names: dict[str, str], masked: Sequence[str]
) -> list[int]:
    """Return the index items of masked blocks, of texts with the text in them, and of renamed owners."""
    owners = ("items.ref", "items.agent_id", "items.sender", "items.session_id")
    renamed = " or ".join(f"{column} in (select value from json_each(?1))" for column in owners)
    labels = "select id from blocks where label in (select value from json_each(?1))"
    query = (
        f"select items.id from items where {renamed} or items.source = 'block' "
        f"and (items.ref in (select value from json_each(?2)) or items.ref in ({labels}))"
    )
    items = {int(row[0]) for row in db.execute(query, (json.dumps(list(names)), json.dumps(masked)))}
    where = "" if redaction.is_json else "where instr(text, ?1) or instr(text, '\\')"
    query = f"select id, text from (select items.id, {TEXT} as text from items) {where}"
    rows: Any = db.execute(query, () if redaction.is_json else (redaction.needle,))
    return sorted(items | {item for item, text in rows if text and redaction.in_text(text) != text})


def _index_again(db: apsw.Connection, item: int) -> None:
    query = f"select source, ref, agent_id, sender, session_id, at, {TEXT} from items where id = ?"
    row = db.execute(query, (item,)).fetchone()
    if row is not None:
        source, ref, agent, sender, session, at, text = row
        label = db.execute("select label from blocks where id = ?", (ref,)).get if source == "block" else None
        indexed = text if label is None else f"{label}\n{text}"
        index_text(db, (source, ref), indexed, (agent, sender, session), at)
