"""Purging: a text is overwritten, or a session deleted, wherever it is stored; its fingerprint stays.

The log is never rewritten but for this. A mark with the fingerprint takes the text's place in every column
that holds people's texts, so that a reader knows that something is missing. Blocks come masked from the
memory, with all their changes, because the store cannot read their content.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence

import apsw

from weft.errors import StoreError
from weft.store.blocks import MaskedBlock
from weft.store.sqlite.index import index_text, unindex
from weft.store.sqlite.schema import Column, Holds, Table
from weft.store.sqlite.search import TEXT
from weft.types.codec import dump_json
from weft.types.secret import fingerprint


def purge(db: apsw.Connection, tables: Sequence[Table], text: str, blocks: Sequence[MaskedBlock]) -> int:
    name = fingerprint(text)
    db.pragma("secure_delete", True)
    for block in blocks:
        _replace(db, block)
    places = len(blocks) + _delete_folds(db, text)
    stale = _holding(db, text, [block.block_id for block in blocks])
    for table in tables:
        for column in table.columns:
            places += _overwrite(db, table.name, column, (text, f"[purged:{name}]"))
    for item in stale:
        _index_again(db, item)
    db.execute("insert into items_fts(items_fts) values('optimize')")
    row = (name, time.time(), places)
    db.execute("insert or replace into purges(fingerprint, at, places) values(?, ?, ?)", row)
    return places


def delete_session(db: apsw.Connection, session_id: str) -> int:
    if db.execute("select 1 from turns where session_id = ? and state = 'running'", (session_id,)).get:
        raise StoreError("A turn runs in this session: try again when it has ended.")
    db.pragma("secure_delete", True)
    refs = [row[0] for row in db.execute("select id from messages where session_id = ?", (session_id,))]
    for ref in refs:
        unindex(db, ("message", str(ref)))
    said = "(select id from messages where session_id = ?)"
    db.execute(f"update facts set message_id = null where message_id in {said}", (session_id,))
    turns = "from turns where session_id = ?)"
    db.execute(f"delete from turn_steps where turn_id in (select id {turns}", (session_id,))
    for box in ("inbox", "outbox"):
        key = "id" if box == "inbox" else "state = 'sent' and inbox_id"
        db.execute(f"update {box} set text = '' where {key} in (select inbox_id {turns}", (session_id,))
    for name in ("turns", "folds", "results", "summaries", "bindings", "messages"):
        db.execute(f"delete from {name} where session_id = ?", (session_id,))
    db.execute("delete from sessions where id = ?", (session_id,))
    db.execute("insert into items_fts(items_fts) values('optimize')")
    row = (fingerprint(session_id), time.time(), len(refs))
    db.execute("insert or replace into purges(fingerprint, at, places) values(?, ?, ?)", row)
    return len(refs)


def _overwrite(db: apsw.Connection, table: str, column: Column, texts: tuple[str, str]) -> int:
    """Put the second text in the place of the first, if the column holds people's texts."""
    if column.holds == Holds.JSON:
        texts = (_inside_json(texts[0]), _inside_json(texts[1]))
    elif column.holds != Holds.TEXT:
        return 0
    name = column.name
    db.execute(f"update {table} set {name} = replace({name}, ?1, ?2) where instr({name}, ?1)", texts)
    return int(db.changes())


def _inside_json(text: str) -> str:
    return dump_json(text)[1:-1]


def _delete_folds(db: apsw.Connection, text: str) -> int:
    """Delete summaries of messages with the text: a model may have put it in words of its own.

    The messages that they stood for are shown again, and summarized anew when needed.
    """
    db.execute(
        "delete from folds where exists(select 1 from messages where messages.session_id = folds.session_id "
        "and messages.seq <= folds.last and (instr(content, ?1) or instr(tool_calls, ?2)))",
        (text, _inside_json(text)),
    )
    return int(db.changes())


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


def _holding(db: apsw.Connection, text: str, masked: Sequence[str]) -> list[int]:
    """Return the index items of masked blocks, and of what has the text in it or in its label."""
    query = (
        f"select items.id from items where instr({TEXT}, ?1) or items.source = 'block' and (items.ref in "
        "(select value from json_each(?2)) or items.ref in (select id from blocks where instr(label, ?1)))"
    )
    return [row[0] for row in db.execute(query, (text, json.dumps(masked)))]


def _index_again(db: apsw.Connection, item: int) -> None:
    query = f"select source, ref, agent_id, sender, session_id, at, {TEXT} from items where id = ?"
    row = db.execute(query, (item,)).fetchone()
    if row is not None:
        source, ref, agent, sender, session, at, text = row
        label = db.execute("select label from blocks where id = ?", (ref,)).get if source == "block" else None
        indexed = text if label is None else f"{label}\n{text}"
        index_text(db, (source, ref), indexed, (agent, sender, session), at)
