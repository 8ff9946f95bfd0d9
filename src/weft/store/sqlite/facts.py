"""Facts about people, with their history."""

from __future__ import annotations

import builtins
import time

import apsw

from weft.errors import StoreError
from weft.store.rules import check_fact
from weft.store.sqlite.database import Database
from weft.store.sqlite.rows import moment, storable
from weft.types.memory import Fact

_PERSON = "coalesce((select person from links where sender = ?1), ?1)"


class SqliteFacts:
    """Facts follow the person: linked senders share them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def set(
        self,
        sender: str,
        key: str,
        value: str,
        *,
        by_model: bool = False,
        source: tuple[str, int] | None = None,
    ) -> None:
        """Store a fact; its earlier value stays in its history.

        Raises:
            StoreError: the fact is not worth storing, and why.
        """
        key, value = storable(key.strip()), storable(value.strip())
        check_fact(key, value, by_model=by_model)

        def work(db: apsw.Connection) -> None:
            current = f"select value from facts where person = {_PERSON} and key = ?2 and ended_at is null"
            if db.execute(current, (sender, key)).get == value:
                return
            now = time.time()
            _end(db, sender, key, now)
            message = "(select id from messages where session_id = ?5 and seq = ?6)"
            db.execute(
                "insert into facts(person, key, value, created_at, message_id) "
                f"values({_PERSON}, ?2, ?3, ?4, {message})",
                (sender, key, value, now, *(source or ("", 0))),
            )

        await self._database.write(work)

    async def find(self, sender: str, key: str) -> str | None:
        query = f"select value from facts where person = {_PERSON} and key = ?2 and ended_at is null"
        return await self._database.read(lambda db: db.execute(query, (sender, key)).get)

    async def get(self, sender: str, key: str) -> str:
        """Return the value of a fact. Raises StoreError if there is none of that key."""
        value = await self.find(sender, key)
        if value is None:
            raise StoreError(f"Nothing is known of {sender!r} under {key!r}: `weft memory` shows what is.")
        return value

    async def list(self, sender: str) -> builtins.list[Fact]:
        """Return the facts of a person, sorted by key."""
        query = (
            f"select key, value, created_at, ended_at from facts where person = {_PERSON} "
            "and ended_at is null order by key"
        )
        return [
            _fact(row) for row in await self._database.read(lambda db: list(db.execute(query, (sender,))))
        ]

    async def history(self, sender: str, key: str) -> builtins.list[Fact]:
        """Return every value that a key has had, oldest first."""
        query = (
            f"select key, value, created_at, ended_at from facts where person = {_PERSON} and key = ?2 "
            "order by created_at, id"
        )
        rows = await self._database.read(lambda db: list(db.execute(query, (sender, key))))
        return [_fact(row) for row in rows]

    async def delete(self, sender: str, key: str) -> bool:
        """End a fact; its history stays. Returns whether there was one."""
        return await self._database.write(lambda db: _end(db, sender, key, time.time()))

    async def link(self, sender: str, person: str) -> None:
        """Join a sender to a person: they share facts from now on."""

        def work(db: apsw.Connection) -> None:
            target = db.execute(f"select {_PERSON}", (person,)).get
            db.execute("insert or replace into links(sender, person) values(?, ?)", (sender, target))

        await self._database.write(work)


def _end(db: apsw.Connection, sender: str, key: str, now: float) -> bool:
    db.execute(
        f"update facts set ended_at = ?3 where person = {_PERSON} and key = ?2 and ended_at is null",
        (sender, key, now),
    )
    return db.changes() > 0


def _fact(row: tuple[object, ...]) -> Fact:
    key, value, created_at, ended_at = row
    return Fact(
        key=str(key),
        value=str(value),
        created_at=moment(created_at),  # type: ignore[arg-type]
        ended_at=moment(ended_at),  # type: ignore[arg-type]
    )
