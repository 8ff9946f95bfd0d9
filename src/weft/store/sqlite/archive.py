"""The archive: notes that are only shown when a search asks for them."""

from __future__ import annotations

import builtins
import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

import apsw

from weft.errors import StoreError
from weft.store.sqlite.database import Repository
from weft.store.sqlite.epochs import forget_epochs
from weft.store.sqlite.index import index_text, unindex
from weft.store.sqlite.rows import new_id, storable
from weft.types.codec import dump_json
from weft.types.memory import ArchivalEntry


class SqliteArchive(Repository):
    async def insert(self, agent_id: str, content: str, metadata: Mapping[str, Any] | None = None) -> str:
        content = storable(content)
        if not content.strip():
            raise StoreError("The note is empty: say what to keep.")
        data = None if metadata is None else dump_json(dict(metadata))
        entry_id = new_id()

        def work(db: apsw.Connection) -> str:
            now = time.time()
            row = (entry_id, agent_id, content, data, now)
            query = "insert into archive(id, agent_id, content, metadata, created_at) values(?, ?, ?, ?, ?)"
            db.execute(query, row)
            index_text(db, ("archival", entry_id), content, (agent_id, "", ""), now)
            return entry_id

        return await self._write(work)

    async def list(self, ids: Sequence[str]) -> dict[str, ArchivalEntry]:
        query = (
            "select id, content, metadata, created_at from archive "
            "where id in (select value from json_each(?))"
        )
        return {entry.id: entry for entry in await self._fetch(ArchivalEntry, query, json.dumps([*ids]))}

    async def newest(self, agent_id: str, limit: int) -> builtins.list[ArchivalEntry]:
        query = (
            "select id, content, metadata, created_at from archive where agent_id = ? "
            "order by created_at desc limit ?"
        )
        return await self._fetch(ArchivalEntry, query, agent_id, limit)

    async def delete(self, entry_id: str, *, agent_id: str | None = None) -> bool:
        def work(db: apsw.Connection) -> bool:
            whose = db.execute("select agent_id from archive where id = ?", (entry_id,)).get
            if agent_id is not None and whose != agent_id:
                return False
            unindex(db, ("archival", entry_id))
            db.execute("delete from archive where id = ?", (entry_id,))
            existed = db.changes() > 0
            if existed:
                forget_epochs(db, "delete")
            return existed

        return await self._write(work)
