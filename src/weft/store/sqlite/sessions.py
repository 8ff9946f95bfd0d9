"""Sessions, and the conversations that they are bound to."""

from __future__ import annotations

import builtins
import json
import time
from collections.abc import Collection
from datetime import UTC, datetime

import apsw

from weft.errors import StoreError
from weft.store.sqlite.database import Repository
from weft.store.sqlite.purge import delete_session
from weft.store.sqlite.rows import fetch, mark_active, new_id, record, storable
from weft.types.session import IMPORTED, ONE_OFF, Session, SessionRule

PLAIN_RULE = SessionRule()
_COLUMNS = (
    "id, channel, conversation, sender, agent_id, created_at, active_at, closed_at, learn_tries, learned_to"
)
_WORDS = "ltrim({0}, '` ' || char(10))"
_TITLE = f"substr({_WORDS}, 1, min(200, instr({_WORDS} || char(10) || '```', char(10) || '```') - 1))"
"""The words of a message up to the first text that is attached to it, or to the end of a first such text."""
_TITLED = f"""{_COLUMNS}, coalesce(nullif(title, ''), (
    select {_TITLE.format("content")} from messages where session_id = sessions.id and role = 'user'
    order by seq limit 1), (
    select {_TITLE.format("text")} from turns where session_id = sessions.id and text is not null
    order by seq limit 1), '') as title"""
_BIND = "insert or replace into bindings(channel, conversation, sender, session_id) values(?, ?, ?, ?)"


class SqliteSessions(Repository):
    async def find_or_create(
        self,
        channel: str,
        conversation: str,
        sender: str,
        *,
        agent_id: str = "",
        rule: SessionRule = PLAIN_RULE,
    ) -> Session:
        def work(db: apsw.Connection) -> Session:
            session = _bound(db, rule.key(channel, conversation, sender))
            if session is not None and rule.goes_on(session, datetime.now(UTC)):
                return session
            if session is not None:
                _close(db, session.id)
            return _new(db, (channel, conversation, sender), agent_id, rule)

        return await self._write(work)

    async def find_either(
        self, name: str, channel: str, sender: str, *, rule: SessionRule = PLAIN_RULE
    ) -> tuple[Session | None, Session | None]:
        key = rule.key(channel, name, sender)
        return await self._lookup(lambda db: (_find(db, name), _bound(db, key)))

    async def find_open(
        self, channel: str, conversation: str, sender: str, *, rule: SessionRule = PLAIN_RULE
    ) -> Session | None:
        key = rule.key(channel, conversation, sender)
        session = await self._lookup(lambda db: _bound(db, key))
        return session if session is not None and rule.goes_on(session, datetime.now(UTC)) else None

    async def reopen(self, session_id: str, *, rule: SessionRule = PLAIN_RULE) -> Session:
        session = await self.get(session_id)
        key = rule.key(session.channel, session.conversation, session.sender)

        def work(db: apsw.Connection) -> None:
            current = _bound(db, key)
            if current is not None and current.id != session_id:
                _close(db, current.id)
            db.execute("update sessions set closed_at = null where id = ?", (session_id,))
            mark_active(db, session_id, time.time())
            db.execute(_BIND, (*key, session_id))

        await self._write(work)
        return await self.get(session_id)

    async def new(
        self,
        channel: str,
        conversation: str,
        sender: str,
        *,
        agent_id: str = "",
        rule: SessionRule = PLAIN_RULE,
        session_id: str = "",
    ) -> Session:
        def work(db: apsw.Connection) -> Session:
            session = _bound(db, rule.key(channel, conversation, sender))
            if session is not None and channel != IMPORTED:
                _close(db, session.id)
            return _new(db, (channel, conversation, sender), agent_id, rule, session_id)

        return await self._write(work)

    async def get(self, session_id: str) -> Session:
        session = await self.find(session_id)
        if session is None:
            raise StoreError(f"There is no session {session_id!r}: `weft sessions list` shows them.")
        return session

    async def find(self, session_id: str) -> Session | None:
        return await self._lookup(lambda db: _find(db, session_id))

    async def list(
        self, *, limit: int = 1000, prefix: str = "", senders: Collection[str] | None = None
    ) -> list[Session]:
        query = (
            f"select {_TITLED} from sessions where substr(id, 1, ?1) = ?2 "
            "and (?3 is null or channel || ':' || sender in (select value from json_each(?3))) "
            "order by active_seq desc, id desc limit ?4"
        )
        among = None if senders is None else json.dumps(sorted(senders))
        return await self._fetch(Session, query, len(prefix), prefix, among, limit)

    async def rename(self, session_id: str, title: str) -> None:
        await self.get(session_id)
        update = "update sessions set title = ? where id = ?"
        await self._write(lambda db: db.execute(update, (storable(title), session_id)))

    async def delete(self, session_id: str) -> int:
        await self.get(session_id)
        places = await self._write(lambda db: delete_session(db, session_id))
        await self._database.compact()
        return places

    async def list_unlearned(self, before: float, *, limit: int = 20) -> builtins.list[Session]:
        query = (
            f"select {_COLUMNS} from sessions where active_at < ? and learn_at <= ? "
            f"and channel <> '{ONE_OFF}' "
            "and exists(select 1 from messages where session_id = sessions.id) "
            "and not exists(select 1 from summaries where session_id = sessions.id) "
            "order by active_at, id limit ?"
        )
        return await self._fetch(Session, query, before, time.time(), limit)

    async def postpone_learning(self, session_id: str, until: float) -> None:
        query = "update sessions set learn_tries = learn_tries + 1, learn_at = ? where id = ?"
        await self._execute(query, until, session_id)

    async def set_learned(self, session_id: str, messages: int) -> None:
        await self._execute("update sessions set learned_to = ? where id = ?", messages, session_id)

    async def close_idle(self, session_id: str, before: float) -> bool:
        def work(db: apsw.Connection) -> bool:
            idle = db.execute(
                "select exists(select 1 from sessions where id = ?1 and (closed_at is not null "
                "or (active_at < ?2 and not exists(select 1 from turns where session_id = ?1 "
                "and state = 'running'))))",
                (session_id, before),
            ).get
            if idle:
                _close(db, session_id)
            return bool(idle)

        return await self._write(work)

    async def close(self, session_id: str) -> None:
        await self.get(session_id)
        await self._write(lambda db: _close(db, session_id))


def _find(db: apsw.Connection, session_id: str) -> Session | None:
    return _first(db, "id = ?", session_id)


def _bound(db: apsw.Connection, key: tuple[str, str, str]) -> Session | None:
    """Return the session that a conversation is bound to, open or closed."""
    bound = "select session_id from bindings where channel = ? and conversation = ? and sender = ?"
    return _first(db, f"id = ({bound})", *key)


def _first(db: apsw.Connection, where: str, *values: str) -> Session | None:
    sessions = fetch(db, Session, f"select {_COLUMNS} from sessions where {where}", *values)
    return sessions[0] if sessions else None


def _close(db: apsw.Connection, session_id: str) -> None:
    db.execute(
        "update sessions set closed_at = ? where id = ? and closed_at is null", (time.time(), session_id)
    )


def _new(
    db: apsw.Connection, who: tuple[str, str, str], agent_id: str, rule: SessionRule, wanted: str = ""
) -> Session:
    now = time.time()
    session_id = _free_id(db, storable(wanted) or rule.id_for(*who) or new_id())
    row = (session_id, *who, agent_id, now, now, None, 0, 0)
    db.execute(f"insert into sessions({_COLUMNS}) values(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
    mark_active(db, session_id, now)
    if who[0] != IMPORTED:
        db.execute(_BIND, (*rule.key(*who), session_id))
    return record(Session, _COLUMNS.split(", "), row)


def _free_id(db: apsw.Connection, wanted: str) -> str:
    """Return the id, with a number after it if an earlier session has it already."""
    exists = "select exists(select 1 from sessions where id = ?)"
    session_id, number = wanted, 1
    while db.execute(exists, (session_id,)).get:
        number += 1
        session_id = f"{wanted}_{number}"
    return session_id
