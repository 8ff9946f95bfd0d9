"""What came in and what must go out.

A message is here before its channel is told that it arrived, and an answer before it is sent.
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
        """Keep a message that came in; its id, or None if it is known already.

        What a stream tells is kept together with that it was told.
        """

        def work(db: apsw.Connection) -> str | None:
            inbox_id = receive(db, message)
            streams.save(db, seen)
            return inbox_id

        return await self._database.write(work)

    async def refuse(self, inbox_id: str, why: str) -> None:
        """Forget what somebody said who may not, and remember that they tried."""

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
        """End a message that needed no turn, such as a command, with an answer that must go out."""
        await self._database.write(lambda db: answer(db, inbox_id, text))

    async def waiting(self) -> list[Waiting]:
        """Messages that were taken over and whose work was not begun, oldest first."""
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
        """Keep a message that must go out."""
        await self._database.write(lambda db: put(db, message, task_id=task_id))

    async def due(
        self, now: float, channels: Collection[str], *, busy: Collection[tuple[str, str]] = ()
    ) -> list[Delivery]:
        """What must go out by now over these channels, oldest first. It is marked: nobody sends it twice.

        Of what goes to one place it is only the first: the next one waits until that has arrived. To a place
        that is `busy` (a channel and a conversation) something is on its way.
        """

        among, elsewhere = json.dumps(sorted(channels)), json.dumps([json_array(*place) for place in busy])
        # Who looks every second takes the write lock only if there is something to mark.
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
        """It has arrived; only that it did is kept."""
        query = "update outbox set state = 'sent', sent_at = ?, text = null where id = ?"
        await self._database.write(lambda db: db.execute(query, (time.time(), delivery_id)).get)

    async def again(self, delivery_id: str, at: float, *, arrived: int = 0) -> None:
        """It did not arrive, or only the first parts of it did, and is tried again later."""
        query = "update outbox set state = 'pending', next_at = ?, arrived = max(arrived, ?) where id = ?"
        row = (at, arrived, delivery_id)
        await self._database.write(lambda db: db.execute(query, row).get)

    async def undeliverable(self, delivery_id: str, *, note: str = "") -> None:
        """It did not arrive and never will, or nobody knows; its text stays here. A note may go out."""

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
        """What was being sent when a process died: nobody knows whether it arrived.

        Each is told once, and the note goes out to where it went.
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
    """Texts as SQLite's function of that name writes them."""
    return json.dumps(texts, ensure_ascii=False, separators=(",", ":"))


def receive(db: apsw.Connection, message: Inbound) -> str | None:
    """Keep a message that came in, inside a transaction; its id, or None if it is known already."""
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
    """The work for a message begins."""
    db.execute("update inbox set state = 'running' where id = ?", (inbox_id,))


def answer(db: apsw.Connection, inbox_id: str, text: str) -> None:
    """The work for a message is done, and its answer must go out."""
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
    """Keep a message that must go out, inside a transaction."""
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
