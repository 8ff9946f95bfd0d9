"""Forgetting for good: a text is overwritten wherever it is kept, and only its fingerprint stays.

The log is never rewritten but for this. In messages, facts, notes and receipts a mark with the fingerprint
takes the text's place, so that whoever reads them knows that something is missing. Blocks come masked from
above, with all their changes, because nobody here can look into them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence

import apsw

from weft.errors import StoreError
from weft.store.base import MaskedBlock
from weft.store.sqlite.database import Database
from weft.store.sqlite.index import index_text
from weft.store.sqlite.search import TEXT
from weft.types.codec import dump_json
from weft.types.secret import fingerprint

_PLAIN = {
    "messages": ("content",),
    "facts": ("key", "value"),
    "summaries": ("text",),
    "tasks": ("text",),
    "archive": ("content",),
    "blocks": ("label", "description"),
    "results": ("content",),
    "folds": ("text",),
    "turns": ("text", "error"),
    "inbox": ("text",),
    "outbox": ("text",),
}
_JSON = {
    "messages": ("tool_calls", "parts", "provider_data"),
    "archive": ("metadata",),
    "blocks": ("schema",),
    "turns": ("receipt",),
    "turn_steps": ("message",),
}


class SqlitePurge:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def purge(self, text: str, blocks: Sequence[MaskedBlock]) -> int:
        """Overwrite a text everywhere; in how many places it was.

        Raises:
            StoreError: a block was changed meanwhile; nothing was overwritten.
        """
        found = await self._database.write(lambda db: _purge(db, text, blocks))
        await self._database.compact()
        return found


def _purge(db: apsw.Connection, text: str, blocks: Sequence[MaskedBlock]) -> int:
    name = fingerprint(text)
    mark = f"[purged:{name}]"
    db.pragma("secure_delete", True)
    found = len(blocks)
    for block in blocks:
        _replace(db, block)
    found += _forget_folds(db, text)
    stale = _holding(db, text, [block.block_id for block in blocks])
    for tables, wanted, put in ((_PLAIN, text, mark), (_JSON, dump_json(text)[1:-1], dump_json(mark)[1:-1])):
        for table, columns in tables.items():
            for column in columns:
                db.execute(
                    f"update {table} set {column} = replace({column}, ?1, ?2) where instr({column}, ?1)",
                    (wanted, put),
                )
                found += db.changes()
    for item in stale:
        _index_again(db, item)
    db.execute("insert into items_fts(items_fts) values('optimize')")
    db.execute("insert or replace into purges values(?, ?, ?)", (name, time.time(), found))
    return found


def _forget_folds(db: apsw.Connection, text: str) -> int:
    """Drop summaries made from messages with the text: a model may have put it in words of its own.

    What they stood for is shown again, and summarised anew when it must be.
    """
    db.execute(
        "delete from folds where exists(select 1 from messages where messages.session_id = folds.session_id "
        "and messages.seq <= folds.last and (instr(content, ?1) or instr(tool_calls, ?2)))",
        (text, dump_json(text)[1:-1]),
    )
    return int(db.changes())


def _replace(db: apsw.Connection, block: MaskedBlock) -> None:
    """Let the masked snapshot stand for every change so far; of those only who, when and what kind stays."""
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
        "insert or replace into block_snapshots values(?, ?, ?)", (block.block_id, seq, block.snapshot)
    )
    db.execute(
        "update blocks set rendered = ?, version = ?, rendered_version = ?, epoch = epoch + 1 where id = ?",
        (block.rendered, seq, seq, block.block_id),
    )


def _holding(db: apsw.Connection, text: str, masked: Sequence[str]) -> list[int]:
    """What is indexed with the text in it or in its label, before it is overwritten; and what was masked."""
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
        shown = text if label is None else f"{label}\n{text}"
        index_text(db, (source, ref), shown, (agent, sender, session), at)
