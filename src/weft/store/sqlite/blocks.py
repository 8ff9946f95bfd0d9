"""Memory blocks: their settings, all their changes, and with whom they are shared.

The content of a block is a chain of changes with a snapshot now and then. The bytes of a change are opaque
here: the memory merges them, so that no writer overwrites another. The rendered text is stored beside the
chain when it is first read after a change, so that many edits in a row render nothing.
"""

from __future__ import annotations

import builtins
import json
import time
from collections.abc import Collection, Mapping
from typing import Any

import apsw

from weft.errors import StoreError
from weft.store.base import Chain, Change, Merge, Moment, Update
from weft.store.sqlite.database import Database
from weft.store.sqlite.index import index_text, unindex
from weft.store.sqlite.rows import moment, new_id, storable
from weft.types.codec import dump_json
from weft.types.memory import BlockInfo, BlockType, BlockVersion, Permission, RenderedBlock, SharedBlock

_COLUMNS = (
    "id, agent_id, label, description, block_type, permission, "
    "char_limit, pinned, schema, version, updated_at, epoch"
)
_SETTABLE = frozenset({"block_type", "schema", "permission", "char_limit", "pinned"})


class SqliteBlocks:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(self, info: BlockInfo, first: Change) -> str:
        """Store a new block. Raises StoreError if the agent has one of that label."""

        def work(db: apsw.Connection) -> str:
            exists = "select exists(select 1 from blocks where agent_id = ? and label = ?)"
            if db.execute(exists, (info.agent_id, info.label)).get:
                raise StoreError(
                    f"There is a block {info.label!r} already: edit it, or choose another label."
                )
            block_id, now = info.id or new_id(), time.time()
            db.execute(
                "insert into blocks(id, agent_id, label, description, block_type, schema, permission, "
                "char_limit, pinned, created_at, updated_at) values(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (block_id, *_settings(info), now, now),
            )
            _record(db, block_id, first)
            return block_id

        return await self._database.write(work)

    async def find(self, agent_id: str, label: str) -> BlockInfo | None:
        query = f"select {_COLUMNS} from blocks where agent_id = ? and label = ?"
        row = await self._database.read(lambda db: db.execute(query, (agent_id, label)).fetchone())
        return None if row is None else _info(row)

    async def list(self, agent_id: str) -> builtins.list[BlockInfo]:
        """Return an agent's own blocks, oldest first."""
        query = f"select {_COLUMNS} from blocks where agent_id = ? order by created_at, id"
        return [_info(row) for row in await self._database.read(lambda db: [*db.execute(query, (agent_id,))])]

    async def everyone(self) -> builtins.list[BlockInfo]:
        """Return the blocks of all agents."""
        query = f"select {_COLUMNS} from blocks order by created_at, id"
        return [_info(row) for row in await self._database.read(lambda db: [*db.execute(query)])]

    async def update(self, block_id: str, changes: Mapping[str, Any]) -> None:
        """Change some settings of a block. Its text must be rendered again."""
        if not changes.keys() <= _SETTABLE:
            raise StoreError(f"A block has nothing to set called {sorted(changes.keys() - _SETTABLE)}.")
        columns = ", ".join(f"{name} = ?" for name in changes)
        query = f"update blocks set {columns}, updated_at = ?, rendered_version = 0 where id = ?"
        values = [dump_json(dict(v)) if isinstance(v, Mapping) else v for v in changes.values()]
        await self._database.write(lambda db: db.execute(query, (*values, time.time(), block_id)).get)

    async def stale(self, agent_id: str | None) -> builtins.list[BlockInfo]:
        return await self._database.read(lambda db: _stale(db, agent_id))

    async def keep_rendered(self, info: BlockInfo, rendered: str, version: int) -> None:
        """Store and index the text of a block at a version.

        Nothing is stored if a newer text is there, or if the block has a new schema or was masked meanwhile.
        """

        def work(db: apsw.Connection) -> None:
            text, now = storable(rendered), time.time()
            row = db.execute(
                "update blocks set rendered = ?, rendered_version = ? where id = ? and rendered_version < ? "
                "and schema = ? and epoch = ? returning agent_id, label",
                (text, version, info.id, version, dump_json(dict(info.schema)), info.epoch),
            ).fetchone()
            if row is not None:
                index_text(db, ("block", info.id), f"{row[1]}\n{text}", (str(row[0]), "", ""), now)

        await self._database.write(work)

    async def delete(self, block_id: str) -> None:
        def work(db: apsw.Connection) -> None:
            unindex(db, ("block", block_id))
            db.execute("delete from blocks where id = ?", (block_id,))

        await self._database.write(work)

    async def rendered_blocks(
        self, agent_id: str, *, named: Collection[str] | None = None
    ) -> tuple[builtins.list[RenderedBlock], builtins.list[BlockInfo]]:
        wanted = (
            "and (?2 is null or block_type = 'core' or (block_type = 'working' and pinned) "
            "or blocks.id in (select value from json_each(?2)))"
        )
        query = (
            "select id, label, description, block_type, permission, pinned, rendered, schema, '', "
            f"created_at, rendered_version from blocks where agent_id = ?1 {wanted} union all "
            "select blocks.id, label, description, block_type, block_shares.permission, pinned, rendered, "
            "schema, blocks.agent_id, created_at, rendered_version "
            "from block_shares join blocks on blocks.id = block_id "
            f"where block_shares.agent_id = ?1 {wanted} order by 9, 10, 1"
        )
        bound = (agent_id, None if named is None else json.dumps(sorted(named)))

        def work(db: apsw.Connection) -> tuple[builtins.list[RenderedBlock], builtins.list[BlockInfo]]:
            return [_rendered(row) for row in db.execute(query, bound)], _stale(db, agent_id)

        return await self._database.read(work)

    async def chain(self, block_id: str) -> Chain:
        """Return the stored content of a block."""
        return await self._database.read(lambda db: _chain(db, block_id))

    async def since(self, block_id: str, seq: int) -> builtins.list[Update]:
        """Return the changes after one."""
        return await self._database.read(lambda db: _since(db, block_id, seq))

    async def record(self, block_id: str, change: Change) -> tuple[int, int]:
        def work(db: apsw.Connection) -> tuple[int, int]:
            before = _version(db, block_id)
            return _record(db, block_id, change), before

        return await self._database.write(work)

    async def merge(self, block_id: str, since: int, merge: Merge) -> int:
        def work(db: apsw.Connection) -> int:
            version = _version(db, block_id)
            moment = Moment(
                others=_since(db, block_id, since),
                history=lambda: _history(db, block_id),
                states=lambda seq: _states(db, block_id, seq),
            )
            change = merge(moment)
            return version if change is None else _record(db, block_id, change)

        return await self._database.write(work)

    async def keep_snapshot(self, info: BlockInfo, seq: int, blob: bytes) -> None:
        """Store a snapshot of all changes up to one. The changes stay for the history."""
        query = (
            "insert or replace into block_snapshots(block_id, seq, blob) "
            "select id, ?, ? from blocks where id = ? and epoch = ?"
        )
        values = (seq, blob, info.id, info.epoch)
        await self._database.write(lambda db: db.execute(query, values).get)

    async def history(self, block_id: str) -> builtins.list[BlockVersion]:
        """Return all changes, oldest first."""
        return await self._database.read(lambda db: _history(db, block_id))

    async def states(self, block_id: str, seq: int) -> tuple[bytes, bytes] | None:
        """Return the state of the document before and after one change."""
        return await self._database.read(lambda db: _states(db, block_id, seq))

    async def share(self, block_id: str, agent_id: str, permission: Permission) -> None:
        query = "insert or replace into block_shares(block_id, agent_id, permission) values(?, ?, ?)"
        await self._database.write(lambda db: db.execute(query, (block_id, agent_id, permission.value)).get)

    async def unshare(self, block_id: str, agent_id: str) -> bool:
        """End a share. Returns whether it existed."""

        def work(db: apsw.Connection) -> bool:
            db.execute("delete from block_shares where block_id = ? and agent_id = ?", (block_id, agent_id))
            return db.changes() > 0

        return await self._database.write(work)

    async def shared_with(self, agent_id: str) -> builtins.list[SharedBlock]:
        query = (
            "select blocks.agent_id, label, block_shares.permission, block_id from block_shares "
            "join blocks on blocks.id = block_id where block_shares.agent_id = ? order by 1, 2"
        )
        rows = await self._database.read(lambda db: [*db.execute(query, (agent_id,))])
        return [
            SharedBlock(owner=owner, label=label, permission=Permission(permission), block_id=block_id)
            for owner, label, permission, block_id in rows
        ]


def _record(db: apsw.Connection, block_id: str, change: Change) -> int:
    now = time.time()
    seq = db.execute(
        "insert into block_updates(block_id, kind, blob, before, after, undoes, author, at) "
        "values(?, ?, ?, ?, ?, ?, ?, ?) returning seq",
        (block_id, change.kind, change.blob, change.before, change.after, change.undoes, change.author, now),
    ).get
    db.execute("update blocks set version = ?, updated_at = ? where id = ?", (seq, now, block_id))
    return int(seq)


def _version(db: apsw.Connection, block_id: str) -> int:
    version = db.execute("select version from blocks where id = ?", (block_id,)).get
    if version is None:
        raise StoreError("The block was deleted meanwhile: nothing was written.")
    return int(version)


def _since(db: apsw.Connection, block_id: str, seq: int) -> list[Update]:
    query = "select seq, blob, before from block_updates where block_id = ? and seq > ? order by seq"
    return [Update(*row) for row in db.execute(query, (block_id, seq))]


def _history(db: apsw.Connection, block_id: str) -> list[BlockVersion]:
    query = "select seq, kind, author, at, undoes from block_updates where block_id = ? order by seq"
    return [
        BlockVersion(version=seq, kind=kind, author=author, at=moment(at), undoes=undoes)
        for seq, kind, author, at, undoes in db.execute(query, (block_id,))
    ]


def _states(db: apsw.Connection, block_id: str, seq: int) -> tuple[bytes, bytes] | None:
    query = "select before, after from block_updates where block_id = ? and seq = ?"
    row = db.execute(query, (block_id, seq)).fetchone()
    return None if row is None else (row[0], row[1])


def _chain(db: apsw.Connection, block_id: str) -> Chain:
    row = db.execute("select seq, blob from block_snapshots where block_id = ?", (block_id,)).fetchone()
    seq, snapshot = row or (0, None)
    return Chain(snapshot=snapshot, seq=seq, updates=tuple(_since(db, block_id, seq)))


def _settings(info: BlockInfo) -> tuple[Any, ...]:
    return (
        info.agent_id,
        storable(info.label),
        storable(info.description),
        info.block_type.value,
        dump_json(dict(info.schema)),
        info.permission.value,
        info.char_limit,
        int(info.pinned),
    )


def _stale(db: apsw.Connection, agent_id: str | None) -> list[BlockInfo]:
    query = f"select {_COLUMNS} from blocks where rendered_version <> version"
    if agent_id is not None:
        query += " and (agent_id = ?1 or id in (select block_id from block_shares where agent_id = ?1))"
    return [_info(row) for row in db.execute(query, () if agent_id is None else (agent_id,))]


def _info(row: tuple[Any, ...]) -> BlockInfo:
    block_id, agent_id, label, description, kind, permission, limit, pinned, *more = row
    schema, version, updated_at, epoch = more
    return BlockInfo(
        id=block_id,
        agent_id=agent_id,
        label=label,
        description=description,
        block_type=BlockType(kind),
        permission=Permission(permission),
        char_limit=limit,
        pinned=bool(pinned),
        schema=json.loads(schema),
        version=version,
        updated_at=moment(updated_at),
        epoch=epoch,
    )


def _rendered(row: tuple[Any, ...]) -> RenderedBlock:
    block_id, label, description, kind, permission, pinned, rendered, schema, owner, _, version = row
    return RenderedBlock(
        id=block_id,
        label=label,
        content=rendered,
        description=description,
        block_type=BlockType(kind),
        permission=Permission(permission),
        pinned=bool(pinned),
        shared_from=owner,
        schema=json.loads(schema),
        version=str(version),
    )
