"""Summaries of earlier conversations."""

from __future__ import annotations

import json
import time

import apsw

from weft.store.sqlite.database import Repository
from weft.store.sqlite.epochs import forget_epochs
from weft.store.sqlite.identity import same_person
from weft.store.sqlite.rows import fetch, storable
from weft.types.memory import Summary


class SqliteSummaries(Repository):
    async def add(
        self,
        channel: str,
        sender: str,
        text: str,
        *,
        session_id: str | None = None,
        origin: str = "agent",
    ) -> None:
        query = (
            "insert into summaries(channel, sender, session_id, text, created_at, origin) "
            "values(?, ?, ?, ?, ?, ?)"
        )
        await self._execute(query, channel, sender, session_id, storable(text), time.time(), origin)

    async def recent(self, channel: str, sender: str, limit: int = 3) -> list[Summary]:
        query = (
            "select text, created_at, origin from summaries where (channel, sender) in "
            "(select substr(value, 1, instr(value, ':') - 1), substr(value, instr(value, ':') + 1) "
            "from json_each(?)) "
            "and text not glob '([0-9]* messages, summary unavailable)' "
            "order by id desc limit ?"
        )

        def work(db: apsw.Connection) -> list[Summary]:
            senders = json.dumps(same_person(db, f"{channel}:{sender}"))
            return fetch(db, Summary, query, senders, limit)

        return await self._lookup(work)

    async def delete(self, summary_id: int) -> bool:
        def work(db: apsw.Connection) -> bool:
            db.execute("delete from summaries where id = ?", (summary_id,))
            existed = db.changes() > 0
            if existed:
                forget_epochs(db, "forget")
            return existed

        return await self._write(work)
