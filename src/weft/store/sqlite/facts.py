"""Facts about people, with their history."""

from __future__ import annotations

import builtins
import time

import apsw

from weft.errors import StoreError
from weft.store.rules import check_fact
from weft.store.sqlite.database import Repository
from weft.store.sqlite.epochs import forget_epochs
from weft.store.sqlite.identity import PERSON
from weft.store.sqlite.rows import next_seq, storable
from weft.types.memory import Fact

_MOST_REPLACED = 200
# A new value ends the one before with the number of its own beginning; forgetting does not.
_REPLACED = "ended_seq in (select began_seq from facts)"
_FACTS = f"select key, value, created_at, ended_at, asked_by from facts where person = {PERSON}"


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
            now, number = time.time(), _next_number(db)
            _end(db, sender, key, now, number)
            message = "(select id from messages where session_id = ?5 and seq = ?6)"
            db.execute(
                "insert into facts(person, key, value, created_at, message_id, began_seq, asked_by) "
                f"values({PERSON}, ?2, ?3, ?4, {message}, ?7, ?8)",
                (sender, key, value, now, *(source or ("", 0)), number, storable(asked_by)),
            )

        await self._write(work)

    async def find(self, sender: str, key: str) -> str | None:
        query = f"select value from facts where person = {PERSON} and key = ?2 and ended_at is null"
        return await self._value(str, f"{query} order by began_seq desc limit 1", sender, key)

    async def get(self, sender: str, key: str) -> str:
        value = await self.find(sender, key)
        if value is None:
            raise StoreError(f"Nothing is known of {sender!r} under {key!r}: `weft memory` shows what is.")
        return value

    async def list(self, sender: str) -> builtins.list[Fact]:
        query = f"{_FACTS} and ended_at is null order by key, created_at desc, id desc"
        return await self._fetch(Fact, query, sender)

    async def list_replaced(
        self, sender: str, *, first: float | None = None, last: float | None = None
    ) -> builtins.list[Fact]:
        query = (
            f"{_FACTS} and {_REPLACED} "
            "and (?2 is null or ended_at >= ?2) and (?3 is null or created_at <= ?3) "
            "and not exists (select 1 from facts as gone where gone.person = facts.person "
            f"and gone.key = facts.key and gone.ended_seq > facts.ended_seq and not gone.{_REPLACED}) "
            f"order by ended_seq desc limit {_MOST_REPLACED}"
        )
        return await self._fetch(Fact, query, sender, first, last)

    async def history(self, sender: str, key: str) -> builtins.list[Fact]:
        return await self._fetch(Fact, f"{_FACTS} and key = ?2 order by began_seq", sender, key)

    async def delete(self, sender: str, key: str) -> bool:
        def work(db: apsw.Connection) -> bool:
            existed = _end(db, sender, key, time.time(), _next_number(db))
            if existed:
                forget_epochs(db, "forget")
            return existed

        return await self._write(work)

    async def last_change(self, sender: str) -> Fact | None:
        query = f"{_FACTS} order by max(began_seq, coalesce(ended_seq, 0)) desc, id desc limit 1"
        return next(iter(await self._fetch(Fact, query, sender)), None)

    async def undo(self, sender: str, key: str) -> str | None:
        def work(db: apsw.Connection) -> str | None:
            of_key = f"from facts where person = {PERSON} and key = ?2"
            newest = f"(select max(max(began_seq, coalesce(ended_seq, 0))) {of_key})"
            number = db.execute(f"select {newest}", (sender, key)).get
            # A new value ends the one before with the number of its own beginning.
            db.execute(f"delete {of_key} and began_seq = ?3", (sender, key, number))
            db.execute(
                "update facts set ended_at = null, ended_seq = null "
                f"where person = {PERSON} and key = ?2 and ended_seq = ?3",
                (sender, key, number),
            )
            forget_epochs(db, "undo")
            value = f"select value {of_key} and ended_at is null order by began_seq desc limit 1"
            row = db.execute(value, (sender, key)).fetchone()
            return None if row is None else str(row[0])

        return await self._write(work)


def _next_number(db: apsw.Connection) -> int:
    """Return the number of a change, inside a transaction: changes are ordered by it, not by their times."""
    return int(db.execute(f"select {next_seq('facts', 'began_seq', 'ended_seq')}").get)


def _end(db: apsw.Connection, sender: str, key: str, now: float, number: int) -> bool:
    db.execute(
        "update facts set ended_at = ?3, ended_seq = ?4 "
        f"where person = {PERSON} and key = ?2 and ended_at is null",
        (sender, key, now, number),
    )
    return db.changes() > 0
