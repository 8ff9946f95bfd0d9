"""Facts about people, with their history."""

from __future__ import annotations

import builtins
import time

import apsw

from weft.errors import StoreError
from weft.store.rules import check_fact
from weft.store.sqlite.database import Repository
from weft.store.sqlite.identity import PERSON
from weft.store.sqlite.rows import storable
from weft.types.memory import Fact

_FACTS = f"select key, value, created_at, ended_at from facts where person = {PERSON}"


class SqliteFacts(Repository):
    async def set(
        self,
        sender: str,
        key: str,
        value: str,
        *,
        by_model: bool = False,
        source: tuple[str, int] | None = None,
        asked_by: str = "",
    ) -> None:
        key, value = storable(key.strip()), storable(value.strip())
        check_fact(key, value, by_model=by_model)

        def work(db: apsw.Connection) -> None:
            current = f"select value from facts where person = {PERSON} and key = ?2 and ended_at is null"
            if [row[0] for row in db.execute(current, (sender, key))] == [value]:
                return
            now = time.time()
            _end(db, sender, key, now)
            message = "(select id from messages where session_id = ?5 and seq = ?6)"
            db.execute(
                "insert into facts(person, key, value, created_at, message_id, asked_by) "
                f"values({PERSON}, ?2, ?3, ?4, {message}, ?7)",
                (sender, key, value, now, *(source or ("", 0)), storable(asked_by)),
            )

        await self._write(work)

    async def find(self, sender: str, key: str) -> str | None:
        query = f"select value from facts where person = {PERSON} and key = ?2 and ended_at is null"
        return await self._value(str, f"{query} order by created_at desc, id desc limit 1", sender, key)

    async def get(self, sender: str, key: str) -> str:
        value = await self.find(sender, key)
        if value is None:
            raise StoreError(f"Nothing is known of {sender!r} under {key!r}: `weft memory` shows what is.")
        return value

    async def list(self, sender: str) -> builtins.list[Fact]:
        query = f"{_FACTS} and ended_at is null order by key, created_at desc, id desc"
        return await self._fetch(Fact, query, sender)

    async def history(self, sender: str, key: str) -> builtins.list[Fact]:
        return await self._fetch(Fact, f"{_FACTS} and key = ?2 order by created_at, id", sender, key)

    async def delete(self, sender: str, key: str) -> bool:
        return await self._write(lambda db: _end(db, sender, key, time.time()))

    async def last_change(self, sender: str) -> Fact | None:
        query = f"{_FACTS} order by max(created_at, coalesce(ended_at, 0)) desc, id desc limit 1"
        return next(iter(await self._fetch(Fact, query, sender)), None)

    async def undo(self, sender: str, key: str) -> str | None:
        def work(db: apsw.Connection) -> str | None:
            of_key = f"from facts where person = {PERSON} and key = ?2"
            newest = f"(select max(max(created_at, coalesce(ended_at, 0))) {of_key})"
            moment = db.execute(f"select {newest}", (sender, key)).get
            # A new value ends the one before at the very moment of its own creation.
            db.execute(f"delete {of_key} and created_at = ?3", (sender, key, moment))
            db.execute(
                f"update facts set ended_at = null where person = {PERSON} and key = ?2 and ended_at = ?3",
                (sender, key, moment),
            )
            value = f"select value {of_key} and ended_at is null order by created_at desc, id desc limit 1"
            row = db.execute(value, (sender, key)).fetchone()
            return None if row is None else str(row[0])

        return await self._write(work)


def _end(db: apsw.Connection, sender: str, key: str, now: float) -> bool:
    db.execute(
        f"update facts set ended_at = ?3 where person = {PERSON} and key = ?2 and ended_at is null",
        (sender, key, now),
    )
    return db.changes() > 0
