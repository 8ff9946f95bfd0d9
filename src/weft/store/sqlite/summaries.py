"""Summaries of earlier conversations."""

from __future__ import annotations

import time

import apsw

from weft.store.sqlite.database import Database
from weft.store.sqlite.rows import moment, storable
from weft.types.memory import Summary


class SqliteSummaries:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, channel: str, sender: str, text: str, *, session_id: str | None = None) -> None:
        row = (channel, sender, session_id, storable(text), time.time())
        query = "insert into summaries(channel, sender, session_id, text, created_at) values(?, ?, ?, ?, ?)"
        await self._database.write(lambda db: db.execute(query, row).get)

    async def recent(self, channel: str, sender: str, limit: int = 3) -> list[Summary]:
        """Return summaries, newest first."""
        query = (
            "select text, created_at from summaries where channel = ? and sender = ? "
            "order by created_at desc, id desc limit ?"
        )
        rows = await self._database.read(lambda db: list(db.execute(query, (channel, sender, limit))))
        return [Summary(text=text, created_at=moment(at)) for text, at in rows]

    async def delete(self, summary_id: int) -> bool:
        """Delete a summary. Returns whether there was one."""

        def work(db: apsw.Connection) -> bool:
            db.execute("delete from summaries where id = ?", (summary_id,))
            return db.changes() > 0

        return await self._database.write(work)
