"""Summaries of earlier conversations."""

from __future__ import annotations

import time

from weft.store.sqlite.database import Repository
from weft.store.sqlite.rows import storable
from weft.types.memory import Summary


class SqliteSummaries(Repository):
    async def add(self, channel: str, sender: str, text: str, *, session_id: str | None = None) -> None:
        query = "insert into summaries(channel, sender, session_id, text, created_at) values(?, ?, ?, ?, ?)"
        await self._execute(query, channel, sender, session_id, storable(text), time.time())

    async def recent(self, channel: str, sender: str, limit: int = 3) -> list[Summary]:
        query = (
            "select text, created_at from summaries where channel = ? and sender = ? "
            "order by created_at desc, id desc limit ?"
        )
        return await self._fetch(Summary, query, channel, sender, limit)

    async def delete(self, summary_id: int) -> bool:
        return await self._execute("delete from summaries where id = ?", summary_id) > 0
