"""Memory blocks: their settings, all their changes, and with whom they are shared.

The content of a block is a chain of changes with a snapshot now and then. The bytes of a change are opaque
to the store: the memory merges them, so that no writer overwrites another. The rendered text is stored
beside the chain when it is first read after a change, so that many edits in a row render nothing.
"""

from __future__ import annotations

import builtins
import json
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import apsw

from weft.errors import InvalidEdit, StoreError
from weft.store.blocks import Chain, Change, Merge, Moment, NewBlock, Update
from weft.store.sqlite.database import Repository
from weft.store.sqlite.epochs import forget_epochs
from weft.store.sqlite.guard import list_guards
from weft.store.sqlite.index import index_text, unindex
from weft.store.sqlite.rows import fetch, new_id, storable
from weft.types.codec import dump_json
from weft.types.memory import BlockInfo, BlockVersion, Permission, RenderedBlock, Share, SharedBlock
from weft.types.person import ASSISTANT, OWNER_NAME

_COLUMNS = (
    "id, agent_id, label, description, block_type, permission, "
    "char_limit, pinned, schema, version, updated_at, epoch"
)
_NAME = f"""case when blocks.agent_id <> ?1 and (
        select count(*) from blocks as other where other.label = blocks.label and (other.agent_id = ?1
        or other.id in (select block_id from block_shares where agent_id = ?1))
    ) > 1 then label || '@' || case when blocks.agent_id = '{ASSISTANT}' then '{OWNER_NAME}'
        when substr(blocks.agent_id, 1, {len(ASSISTANT) + 1}) = '{ASSISTANT}/'
        then substr(blocks.agent_id, {len(ASSISTANT) + 2}) else blocks.agent_id end
    else label end"""
"""The name of a block for a reader: `LABEL@OWNER`, as in `shared_label`, if another one has its label."""
_SETTABLE = frozenset({"block_type", "schema", "permission", "char_limit", "pinned", "description", "label"})


class SqliteBlocks(Repository):
    async def create(self, info: BlockInfo, first: Change, rendered: str | None = None) -> str:
        return await self._write(lambda db: _create(db, info, first, rendered))

    async def create_missing(
        self, blocks: Sequence[NewBlock], shared: BlockInfo | None, agent_id: str
    ) -> None:
        def work(db: apsw.Connection) -> None:
            for new in blocks:
                if not _exists(db, new.info):
                    _create(db, new.info, new.first, new.rendered)
            if shared is not None:
                _share(db, shared.id, agent_id, Permission.READ_ONLY)

        await self._write(work)

    async def find(self, agent_id: str, label: str) -> BlockInfo | None:
        query = f"select {_COLUMNS} from blocks where agent_id = ? and label = ?"
        blocks = await self._fetch(BlockInfo, query, agent_id, label)
        return blocks[0] if blocks else None

    async def list(self, agent_id: str) -> builtins.list[BlockInfo]:
        query = f"select {_COLUMNS} from blocks where agent_id = ? order by created_at, id"
        return await self._fetch(BlockInfo, query, agent_id)

    async def page(self, agent_id: str, *, limit: int, offset: int) -> tuple[builtins.list[BlockInfo], int]:
        query = f"select {_COLUMNS} from blocks where agent_id = ? order by label limit ? offset ?"
        count = await self._value(int, "select count(*) from blocks where agent_id = ?", agent_id)
        return await self._fetch(BlockInfo, query, agent_id, limit, offset), count or 0

    async def list_all(self) -> builtins.list[BlockInfo]:
        return await self._fetch(BlockInfo, f"select {_COLUMNS} from blocks order by created_at, id")

    async def update(self, block_id: str, changes: Mapping[str, Any]) -> None:
        if not changes.keys() <= _SETTABLE:
            raise StoreError(f"A block has nothing to set called {sorted(changes.keys() - _SETTABLE)}.")
        columns = ", ".join(f"{name} = ?" for name in changes)
        query = f"update blocks set {columns}, updated_at = ?, rendered_version = 0 where id = ?"
        values = [dump_json(dict(v)) if isinstance(v, Mapping) else v for v in changes.values()]

        def work(db: apsw.Connection) -> None:
            label, taken = (
                changes.get("label"),
                "select 1 from blocks where label = ? and id <> ? and agent_id = ",
            )
            own = f"{taken}(select agent_id from blocks where id = ?)"
            if label is not None and db.execute(own, (label, block_id, block_id)).fetchone():
                raise InvalidEdit(f"There is a block {label!r} already: choose another label.")
            db.execute(query, (*values, time.time(), block_id))
            if "permission" in changes:
                forget_epochs(db, "permission")

        await self._write(work)

    async def list_stale(self, agent_id: str | None) -> builtins.list[BlockInfo]:
        return await self._lookup(lambda db: _stale(db, agent_id))

    async def save_rendered(self, info: BlockInfo, rendered: str, version: int) -> None:
        await self._write(lambda db: _save_rendered(db, info, rendered, version))

    async def delete(self, block_id: str) -> None:
        def work(db: apsw.Connection) -> None:
            unindex(db, ("block", block_id))
            db.execute("delete from blocks where id = ?", (block_id,))
            forget_epochs(db, "delete")

        await self._write(work)

    async def rendered_blocks(
        self, agent_id: str, *, named: Collection[str] | None = None
    ) -> tuple[builtins.list[RenderedBlock], builtins.list[BlockInfo]]:
        query = (
            f"select id, {_NAME} as label, rendered as content, description, block_type, pinned, schema, "
            "iif(blocks.agent_id = ?1, blocks.permission, block_shares.permission) as permission, "
            "iif(blocks.agent_id = ?1, '', blocks.agent_id) as shared_from, rendered_version as version "
            "from blocks left join block_shares on block_id = id and block_shares.agent_id = ?1 "
            "where id in (select id from blocks where agent_id = ?1 "
            "union select block_id from block_shares where agent_id = ?1) "
            "and (?2 is null or block_type = 'core' or (block_type = 'working' and pinned) "
            "or id in (select value from json_each(?2))) order by shared_from, created_at, id"
        )
        ids = None if named is None else json.dumps(sorted(named))
        return await self._lookup(
            lambda db: (fetch(db, RenderedBlock, query, agent_id, ids), _stale(db, agent_id))
        )

    async def get_chain(self, block_id: str) -> Chain:
        def work(db: apsw.Connection) -> Chain:
            row = db.execute(
                "select seq, blob from block_snapshots where block_id = ?", (block_id,)
            ).fetchone()
            seq, snapshot = row or (0, None)
            return Chain(snapshot=snapshot, seq=seq, updates=tuple(_since(db, block_id, seq)))

        return await self._read(work)

    async def list_since(self, block_id: str, seq: int) -> builtins.list[Update]:
        return await self._read(lambda db: _since(db, block_id, seq))

    async def merge(self, block_id: str, since: int, merge: Merge) -> int:
        def work(db: apsw.Connection) -> int:
            version = _version(db, block_id)
            moment = Moment(
                others=_since(db, block_id, since),
                history=lambda: _history(db, block_id),
                states=lambda seq: _states(db, block_id, seq),
                guards=lambda: list_guards(db),
            )
            change = merge(moment)
            return version if change is None else _record(db, block_id, change)

        return await self._write(work)

    async def save_snapshot(self, info: BlockInfo, seq: int, blob: bytes) -> None:
        query = (
            "insert or replace into block_snapshots(block_id, seq, blob) "
            "select id, ?, ? from blocks where id = ? and epoch = ?"
        )
        await self._execute(query, seq, blob, info.id, info.epoch)

    async def history(self, block_id: str) -> builtins.list[BlockVersion]:
        return await self._read(lambda db: _history(db, block_id))

    async def states(self, block_id: str, seq: int) -> tuple[bytes, bytes] | None:
        return await self._read(lambda db: _states(db, block_id, seq))

    async def share(self, block_id: str, agent_id: str, permission: Permission) -> None:
        await self._write(lambda db: _share(db, block_id, agent_id, permission))

    async def unshare(self, block_id: str, agent_id: str) -> bool:
        def work(db: apsw.Connection) -> bool:
            db.execute("delete from block_shares where block_id = ? and agent_id = ?", (block_id, agent_id))
            existed = db.changes() > 0
            if existed:
                forget_epochs(db, "permission")
            return existed

        return await self._write(work)

    async def list_shares(self, agent_id: str) -> builtins.list[Share]:
        query = (
            "select label, block_shares.agent_id, block_shares.permission from block_shares "
            "join blocks on blocks.id = block_id where blocks.agent_id = ? order by 1, 2"
        )
        return await self._fetch(Share, query, agent_id)

    async def list_shared(self, agent_id: str) -> builtins.list[SharedBlock]:
        query = (
            "select blocks.agent_id as owner, label, block_shares.permission, block_id from block_shares "
            "join blocks on blocks.id = block_id where block_shares.agent_id = ? order by 1, 2"
        )
        return await self._fetch(SharedBlock, query, agent_id)


def _exists(db: apsw.Connection, info: BlockInfo) -> bool:
    query = "select exists(select 1 from blocks where agent_id = ? and label = ?)"
    return bool(db.execute(query, (info.agent_id, info.label)).get)


def _create(db: apsw.Connection, info: BlockInfo, first: Change, rendered: str | None) -> str:
    if _exists(db, info):
        raise InvalidEdit(f"There is a block {info.label!r} already: edit it, or choose another label.")
    block_id, now = info.id or new_id(), time.time()
    db.execute(
        "insert into blocks(id, agent_id, label, description, block_type, schema, permission, "
        "char_limit, pinned, created_at, updated_at) values(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(block_id, info.agent_id, storable(info.label), storable(info.description)),
            *(info.block_type.value, dump_json(dict(info.schema)), info.permission.value),
            *(info.char_limit, int(info.pinned), now, now),
        ),
    )
    seq = _record(db, block_id, first)
    if rendered is not None:
        _save_rendered(db, replace(info, id=block_id), rendered, seq)
    return block_id


def _share(db: apsw.Connection, block_id: str, agent_id: str, permission: Permission) -> None:
    known = "select permission from block_shares where block_id = ? and agent_id = ?"
    before = db.execute(known, (block_id, agent_id)).get
    if before == permission.value:
        return
    if before is not None:
        forget_epochs(db, "permission")
    query = "insert or replace into block_shares(block_id, agent_id, permission) values(?, ?, ?)"
    db.execute(query, (block_id, agent_id, permission.value))


def _record(db: apsw.Connection, block_id: str, change: Change) -> int:
    now = time.time()
    seq = db.execute(
        "insert into block_updates(block_id, kind, blob, before, after, undoes, author, at) "
        "values(?, ?, ?, ?, ?, ?, ?, ?) returning seq",
        (block_id, change.kind, change.blob, change.before, change.after, change.undoes, change.author, now),
    ).get
    db.execute("update blocks set version = ?, updated_at = ? where id = ?", (seq, now, block_id))
    if change.kind in ("undo", "redo"):
        forget_epochs(db, change.kind)
    return int(seq)


def _save_rendered(db: apsw.Connection, info: BlockInfo, rendered: str, version: int) -> None:
    """Store and index the text of a block, unless a newer one is stored."""
    text = storable(rendered)
    row = db.execute(
        "update blocks set rendered = ?, rendered_version = ? where id = ? and rendered_version < ? "
        "and schema = ? and epoch = ? returning agent_id, label",
        (text, version, info.id, version, dump_json(dict(info.schema)), info.epoch),
    ).fetchone()
    if row is not None:
        index_text(db, ("block", info.id), f"{row[1]}\n{text}", (str(row[0]), "", ""), time.time())


def _version(db: apsw.Connection, block_id: str) -> int:
    version = db.execute("select version from blocks where id = ?", (block_id,)).get
    if version is None:
        raise StoreError("The block was deleted meanwhile: nothing was written.")
    return int(version)


def _since(db: apsw.Connection, block_id: str, seq: int) -> list[Update]:
    query = "select seq, blob, before from block_updates where block_id = ? and seq > ? order by seq"
    return [Update(*row) for row in db.execute(query, (block_id, seq))]


def _history(db: apsw.Connection, block_id: str) -> list[BlockVersion]:
    query = (
        "select seq as version, kind, author, at, undoes from block_updates where block_id = ? order by seq"
    )
    return fetch(db, BlockVersion, query, block_id)


def _states(db: apsw.Connection, block_id: str, seq: int) -> tuple[bytes, bytes] | None:
    query = "select before, after from block_updates where block_id = ? and seq = ?"
    row = db.execute(query, (block_id, seq)).fetchone()
    return None if row is None else (row[0], row[1])


def _stale(db: apsw.Connection, agent_id: str | None) -> list[BlockInfo]:
    query = (
        f"select {_COLUMNS} from blocks where rendered_version <> version and (?1 is null or agent_id = ?1 "
        "or id in (select block_id from block_shares where agent_id = ?1))"
    )
    return fetch(db, BlockInfo, query, agent_id)
