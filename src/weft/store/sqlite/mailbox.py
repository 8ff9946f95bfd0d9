"""The mailbox: messages that came in and messages that must go out.

A message is stored before its channel hears that it arrived, and an answer before it is sent.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any

import apsw

from weft.store.rules import DENIAL_SECONDS, MAIL_SECONDS
from weft.store.sqlite import streams
from weft.store.sqlite.database import Repository
from weft.store.sqlite.guard import forget_old_guards
from weft.store.sqlite.rows import new_id, next_seq, record, storable
from weft.types.codec import dump_json
from weft.types.delivery import Delivery, Waiting
from weft.types.envelope import Inbound, Outbound, Seen

_DELIVERY = "id, attempts, channel, conversation, coalesce(text, ''), arrived"
_INBOUND = "channel, external_id, conversation, sender, text, name, kind, origin, blocks"
_DONE = "update inbox set state = 'done', text = null, ended_at = ? where id = ?"


class SqliteMailbox(Repository):
    async def receive(self, message: Inbound, seen: Iterable[Seen] = ()) -> str | None:
        def work(db: apsw.Connection) -> str | None:
            inbox_id = receive(db, message)
            streams.save(db, seen)
            return inbox_id

        return await self._write(work)

    async def refuse(self, inbox_id: str, why: str) -> None:
        def work(db: apsw.Connection) -> None:
            who = db.execute("select channel, sender from inbox where id = ?", (inbox_id,)).fetchone()
            if who is not None:
                now = time.time()
                db.execute(
                    "insert into denials(channel, sender, why, at) values(?, ?, ?, ?)", (*who, why, now)
                )
                db.execute(_DONE, (now, inbox_id))

        await self._write(work)

    async def answer(self, inbox_id: str, text: str) -> None:
        await self._write(lambda db: answer(db, inbox_id, text))

    async def list_waiting(self) -> list[Waiting]:
        rows = await self._rows(f"select id, {_INBOUND} from inbox where state = 'new' order by seq")
        names = _INBOUND.split(", ")
        return [Waiting(id=inbox_id, message=record(Inbound, names, row)) for inbox_id, *row in rows]

    async def enqueue(self, message: Outbound, *, task_id: str = "") -> None:
        await self._write(lambda db: enqueue(db, message, task_id=task_id))

    async def claim_due(
        self, now: float, channels: Collection[str], *, busy: Collection[tuple[str, str]] = ()
    ) -> list[Delivery]:
        among, elsewhere = json.dumps(sorted(channels)), json.dumps([json_array(*place) for place in busy])
        # This is called every second: it takes the write lock only if there is something to mark.
        waits = (
            "select exists(select 1 from outbox where state = 'pending' and next_at <= ? "
            "and channel in (select value from json_each(?)))"
        )
        if not await self._value(int, waits, now, among):
            return []

        def work(db: apsw.Connection) -> list[Delivery]:
            rows: Sequence[Any] = db.execute(
                f"select {_DELIVERY} from outbox where state = 'pending' and next_at <= ?1 "
                "and channel in (select value from json_each(?2)) "
                "and not exists(select 1 from outbox as earlier where earlier.seq < outbox.seq "
                "and earlier.state = 'pending' and earlier.channel = outbox.channel "
                "and earlier.conversation = outbox.conversation) "
                "and json_array(channel, conversation) not in (select value from json_each(?3)) "
                "order by seq limit 100",
                (now, among, elsewhere),
            ).fetchall()
            for row in rows:
                mark = "update outbox set state = 'sending', attempts = attempts + 1 where id = ?"
                db.execute(mark, (row[0],))
            return [_delivery(row) for row in rows]

        return await self._write(work)

    async def mark_sent(self, delivery_id: str) -> None:
        query = "update outbox set state = 'sent', sent_at = ?, text = null where id = ?"
        await self._execute(query, time.time(), delivery_id)

    async def reschedule(self, delivery_id: str, at: float, *, arrived: int = 0) -> None:
        query = "update outbox set state = 'pending', next_at = ?, arrived = max(arrived, ?) where id = ?"
        await self._execute(query, at, arrived, delivery_id)

    async def mark_failed(self, delivery_id: str, *, note: str = "") -> None:
        def work(db: apsw.Connection) -> None:
            query = "update outbox set state = 'failed' where id = ? returning channel, conversation"
            place = db.execute(query, (delivery_id,)).fetchone()
            if place is not None and note:
                channel, conversation = map(str, place)
                enqueue(db, Outbound(channel=channel, conversation=conversation, text=note))

        await self._write(work)

    async def delete_old(self, now: float) -> None:
        def work(db: apsw.Connection) -> None:
            db.execute("delete from inbox where state = 'done' and ended_at < ?", (now - MAIL_SECONDS,))
            db.execute("delete from outbox where state = 'sent' and sent_at < ?", (now - MAIL_SECONDS,))
            db.execute("delete from denials where at < ?", (now - DENIAL_SECONDS,))
            forget_old_guards(db, now)

        await self._write(work)

    async def fail_interrupted(self, channels: Collection[str], *, note: str = "") -> list[Delivery]:
        def work(db: apsw.Connection) -> list[Delivery]:
            where = "state = 'sending' and channel in (select value from json_each(?))"
            query = f"select {_DELIVERY} from outbox where {where} order by seq"
            among = (json.dumps(sorted(channels)),)
            rows: Sequence[Any] = db.execute(query, among).fetchall()
            db.execute(f"update outbox set state = 'failed' where {where}", among)
            interrupted = [_delivery(row) for row in rows]
            for delivery in interrupted if note else ():
                enqueue(db, replace(delivery.message, text=note, arrived=0))
            return interrupted

        return await self._write(work)


def json_array(*texts: str) -> str:
    """Write texts as SQLite's function of that name does."""
    return json.dumps(texts, ensure_ascii=False, separators=(",", ":"))


def receive(db: apsw.Connection, message: Inbound) -> str | None:
    """Store a message that came in, inside a transaction. Returns its id, or None if it is known already."""
    inbox_id = new_id()
    texts = [storable(getattr(message, name)) for name in _INBOUND.split(", ")[:-1]]
    db.execute(
        f"insert or ignore into inbox(id, {_INBOUND}, state, created_at, seq) "
        f"values(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'new', ?, {next_seq('inbox')})",
        (inbox_id, *texts, dump_json(list(message.blocks)), time.time()),
    )
    return inbox_id if db.changes() else None


def begin(db: apsw.Connection, inbox_id: str) -> None:
    """Record that work on a message begins, inside a transaction."""
    db.execute("update inbox set state = 'running' where id = ?", (inbox_id,))


def answer(db: apsw.Connection, inbox_id: str, text: str) -> None:
    """Record that work on a message is done, and store its answer, inside a transaction."""
    where = "select channel, conversation from inbox where id = ? and state <> 'done'"
    place = db.execute(where, (inbox_id,)).fetchone()
    if place is None:
        return
    db.execute(_DONE, (time.time(), inbox_id))
    if text.strip():
        channel, conversation = map(str, place)
        enqueue(db, Outbound(channel=channel, conversation=conversation, text=text), inbox_id=inbox_id)


def enqueue(db: apsw.Connection, message: Outbound, *, inbox_id: str = "", task_id: str = "") -> None:
    """Store a message that must go out, inside a transaction."""
    now = time.time()
    db.execute(
        "insert into outbox(id, inbox_id, task_id, channel, conversation, text, state, next_at, created_at, "
        f"seq) values(?, ?, ?, ?, ?, ?, 'pending', ?, ?, {next_seq('outbox')})",
        (
            *(new_id(), inbox_id or None, task_id or None),
            *(message.channel, message.conversation, storable(message.text), now, now),
        ),
    )


def _delivery(row: Any) -> Delivery:
    delivery_id, attempts, channel, conversation, text, arrived = row
    message = Outbound(channel=channel, conversation=conversation, text=text, arrived=arrived)
    return Delivery(id=delivery_id, message=message, attempts=attempts + 1)
