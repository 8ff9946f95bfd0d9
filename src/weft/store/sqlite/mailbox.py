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
from weft.store.sqlite.database import Database
from weft.store.sqlite.rows import new_id, storable
from weft.types.codec import dump_json
from weft.types.delivery import Delivery, Waiting
from weft.types.envelope import Inbound, Outbound, Seen

_DELIVERY = "id, channel, conversation, text, attempts, arrived"


class SqliteMailbox:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def receive(self, message: Inbound, seen: Iterable[Seen] = ()) -> str | None:
        """Store a message that came in. Returns its id, or None if it is known already.

        A notice of a stream is stored together with the items that it tells.
        """

        def work(db: apsw.Connection) -> str | None:
            inbox_id = receive(db, message)
            streams.save(db, seen)
            return inbox_id

        return await self._database.write(work)

    async def refuse(self, inbox_id: str, why: str) -> None:
        """Delete the text of a message from somebody who is not let in, and record the attempt."""

        def work(db: apsw.Connection) -> None:
            who = db.execute("select channel, sender from inbox where id = ?", (inbox_id,)).fetchone()
            if who is not None:
                now = time.time()
                db.execute(
                    "insert into denials(channel, sender, why, at) values(?, ?, ?, ?)", (*who, why, now)
                )
                done = "update inbox set state = 'done', text = null, ended_at = ? where id = ?"
                db.execute(done, (now, inbox_id))

        await self._database.write(work)

    async def answer(self, inbox_id: str, text: str) -> None:
        """Answer a message that needed no turn, such as a command."""
        await self._database.write(lambda db: answer(db, inbox_id, text))

    async def waiting(self) -> list[Waiting]:
        """Return stored messages on which no work has begun, oldest first."""
        query = (
            "select id, channel, external_id, conversation, sender, text, name, kind, origin, blocks "
            "from inbox where state = 'new' order by created_at, id"
        )
        rows: list[Any] = await self._database.read(lambda db: list(db.execute(query)))
        return [
            Waiting(
                id=row[0],
                message=Inbound(
                    channel=row[1],
                    external_id=row[2],
                    conversation=row[3],
                    sender=row[4],
                    text=row[5],
                    name=row[6],
                    kind=row[7],
                    origin=row[8],
                    blocks=tuple(json.loads(row[9])),
                ),
            )
            for row in rows
        ]

    async def put(self, message: Outbound, *, task_id: str = "") -> None:
        """Store a message that must go out."""
        await self._database.write(lambda db: put(db, message, task_id=task_id))

    async def due(
        self, now: float, channels: Collection[str], *, busy: Collection[tuple[str, str]] = ()
    ) -> list[Delivery]:
        """Return the messages to send now over these channels, oldest first, and mark them as being sent.

        Of several messages to one place only the first is returned: the next one waits for it. A place that
        is `busy` (a channel and a conversation) gets none.
        """
        among, elsewhere = json.dumps(sorted(channels)), json.dumps([json_array(*place) for place in busy])
        # This is called every second: it takes the write lock only if there is something to mark.
        waits = (
            "select exists(select 1 from outbox where state = 'pending' and next_at <= ? "
            "and channel in (select value from json_each(?)))"
        )
        if not await self._database.read(lambda db: db.execute(waits, (now, among)).get):
            return []

        def work(db: apsw.Connection) -> list[Delivery]:
            rows: Sequence[Any] = db.execute(
                f"select {_DELIVERY} from outbox where state = 'pending' and next_at <= ?1 "
                "and channel in (select value from json_each(?2)) "
                "and not exists(select 1 from outbox as earlier where earlier.id < outbox.id "
                "and earlier.state = 'pending' and earlier.channel = outbox.channel "
                "and earlier.conversation = outbox.conversation) "
                "and json_array(channel, conversation) not in (select value from json_each(?3)) "
                "order by created_at, id limit 100",
                (now, among, elsewhere),
            ).fetchall()
            for row in rows:
                mark = "update outbox set state = 'sending', attempts = attempts + 1 where id = ?"
                db.execute(mark, (row[0],))
            return [_delivery(row) for row in rows]

        return await self._database.write(work)

    async def sent(self, delivery_id: str) -> None:
        """Record that a message has arrived, and delete its text."""
        query = "update outbox set state = 'sent', sent_at = ?, text = null where id = ?"
        await self._database.write(lambda db: db.execute(query, (time.time(), delivery_id)).get)

    async def again(self, delivery_id: str, at: float, *, arrived: int = 0) -> None:
        """Schedule another attempt. `arrived`: number of parts delivered before the failure."""
        query = "update outbox set state = 'pending', next_at = ?, arrived = max(arrived, ?) where id = ?"
        row = (at, arrived, delivery_id)
        await self._database.write(lambda db: db.execute(query, row).get)

    async def undeliverable(self, delivery_id: str, *, note: str = "") -> None:
        """Give a message up; its text stays. A note may be sent to the same place."""

        def work(db: apsw.Connection) -> None:
            query = "update outbox set state = 'failed' where id = ? returning channel, conversation"
            place = db.execute(query, (delivery_id,)).fetchone()
            if place is not None and note:
                channel, conversation = map(str, place)
                put(db, Outbound(channel=channel, conversation=conversation, text=note))

        await self._database.write(work)

    async def tidy(self, now: float) -> None:
        """Delete old inbox and outbox rows and old denials. What could not be delivered stays."""

        def work(db: apsw.Connection) -> None:
            db.execute("delete from inbox where state = 'done' and ended_at < ?", (now - MAIL_SECONDS,))
            db.execute("delete from outbox where state = 'sent' and sent_at < ?", (now - MAIL_SECONDS,))
            db.execute("delete from denials where at < ?", (now - DENIAL_SECONDS,))

        await self._database.write(work)

    async def doubtful(self, channels: Collection[str], *, note: str = "") -> list[Delivery]:
        """Return messages that were being sent when a process died, and give them up.

        Nobody can know whether they arrived. The note is sent to where each went.
        """

        def work(db: apsw.Connection) -> list[Delivery]:
            where = "state = 'sending' and channel in (select value from json_each(?))"
            query = f"select {_DELIVERY} from outbox where {where}"
            among = (json.dumps(sorted(channels)),)
            rows: Sequence[Any] = db.execute(query, among).fetchall()
            db.execute(f"update outbox set state = 'failed' where {where}", among)
            doubtful = [_delivery(row) for row in rows]
            for delivery in doubtful if note else ():
                put(db, replace(delivery.message, text=note, arrived=0))
            return doubtful

        return await self._database.write(work)


def json_array(*texts: str) -> str:
    """Write texts as SQLite's function of that name does."""
    return json.dumps(texts, ensure_ascii=False, separators=(",", ":"))


def receive(db: apsw.Connection, message: Inbound) -> str | None:
    """Store a message that came in, inside a transaction. Returns its id, or None if it is known already."""
    inbox_id = new_id()
    db.execute(
        "insert or ignore into inbox(id, channel, external_id, conversation, sender, text, name, "
        "kind, origin, blocks, state, created_at) values(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'new', ?)",
        (
            inbox_id,
            message.channel,
            storable(message.external_id),
            storable(message.conversation),
            storable(message.sender),
            storable(message.text),
            storable(message.name),
            message.kind,
            message.origin,
            dump_json(list(message.blocks)),
            time.time(),
        ),
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
    done = "update inbox set state = 'done', text = null, ended_at = ? where id = ?"
    db.execute(done, (time.time(), inbox_id))
    if text.strip():
        channel, conversation = map(str, place)
        put(db, Outbound(channel=channel, conversation=conversation, text=text), inbox_id=inbox_id)


def put(db: apsw.Connection, message: Outbound, *, inbox_id: str = "", task_id: str = "") -> None:
    """Store a message that must go out, inside a transaction."""
    now = time.time()
    db.execute(
        "insert into outbox(id, inbox_id, task_id, channel, conversation, text, state, next_at, created_at) "
        "values(?, ?, ?, ?, ?, ?, 'pending', ?, ?)",
        (
            new_id(),
            inbox_id or None,
            task_id or None,
            message.channel,
            message.conversation,
            storable(message.text),
            now,
            now,
        ),
    )


def _delivery(row: Any) -> Delivery:
    delivery_id, channel, conversation, text, attempts, arrived = row
    message = Outbound(channel=channel, conversation=conversation, text=text or "", arrived=arrived)
    return Delivery(id=delivery_id, message=message, attempts=attempts + 1)
