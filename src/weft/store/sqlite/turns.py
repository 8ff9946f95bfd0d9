"""The receipts of turns."""

from __future__ import annotations

import time

from weft.errors import StoreError
from weft.store.sqlite.database import Database
from weft.store.sqlite.rows import new_id, storable
from weft.types.receipt import Receipt


class SqliteTurns:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, session_id: str | None, receipt: Receipt) -> str:
        """Keep a receipt and give the turn's id."""
        turn_id = new_id()
        row = (turn_id, session_id, storable(receipt.to_json()), time.time())
        query = "insert into turns(id, session_id, receipt, created_at) values(?, ?, ?, ?)"
        await self._database.write(lambda db: db.execute(query, row).get)
        return turn_id

    async def get(self, turn_id: str) -> Receipt:
        """Raises StoreError if there is none of that id."""
        query = "select receipt from turns where id = ?"
        found = await self._database.read(lambda db: db.execute(query, (turn_id,)).get)
        if found is None:
            raise StoreError(f"There is no turn {turn_id!r}: `weft turns` lists them.")
        return Receipt.from_json(str(found))

    async def list(self, session_id: str, *, limit: int = 100) -> list[str]:
        """The ids of a session's turns, newest first."""
        query = "select id from turns where session_id = ? order by created_at desc, id desc limit ?"
        return [
            row[0] for row in await self._database.read(lambda db: [*db.execute(query, (session_id, limit))])
        ]
