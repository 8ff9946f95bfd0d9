"""What is to be done for people, and when."""

from __future__ import annotations

import builtins
import json
import logging
import time
from collections.abc import Collection
from datetime import UTC, datetime
from math import ceil
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import apsw

from weft.errors import StoreError
from weft.store.sqlite.database import Database
from weft.store.sqlite.mailbox import put, receive
from weft.store.sqlite.rows import new_id, stamp, storable
from weft.types.envelope import Inbound, Outbound
from weft.types.memory import Task
from weft.types.repeat import check_repeat, next_due

_log = logging.getLogger(__name__)
_SIMILAR_SECONDS = 30 * 60
_LATE_SECONDS = 5 * 60
_AGAIN_SECONDS = 2 * 60
_ATTEMPTS = 3
"""So often what failed is tried again, and after so long."""
_FIRST_YEAR, _LAST_YEAR = 1970, 9000
ACTION = "action"
_ORDER = "task:"
_COLUMNS = "id, text, due, repeat, action, zone, channel, conversation"


class SqliteTasks:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(  # noqa: PLR0913 - the public contract, and where an answer goes
        self,
        sender: str,
        text: str,
        due: datetime | None = None,
        repeat: str = "once",
        *,
        action: str = "reminder",
        zone: str = "",
        channel: str = "",
        conversation: str = "",
    ) -> str:
        """Keep a task and give its id; the same text due within half an hour is the same task.

        A time without an offset is one on the wall of its zone. Where the task came from is where it is told.

        Raises:
            StoreError: it is empty, or has no time although it repeats.
            ConfigError: nothing repeats so.
        """
        text, repeat = storable(text.strip()), check_repeat(repeat)
        if not text:
            raise StoreError("The task is empty: say what is to be done.")
        due = _zoned(due, zone)
        if repeat != "once" and due is None:
            raise StoreError("A task that repeats needs a time: say when it is due first.")
        due_at, due_text = stamp(due), due.isoformat() if due else None

        def work(db: apsw.Connection) -> str:
            same = db.execute(
                "select id from tasks where sender = ? and status = 'pending' and lower(text) = lower(?) "
                "and ((due_at is null and ?3 is null) or abs(due_at - ?3) <= ?4)",
                (sender, text, due_at, _SIMILAR_SECONDS),
            ).get
            if same is not None:
                return str(same)
            task_id = new_id()
            db.execute(
                "insert into tasks(id, sender, text, due, due_at, repeat, action, status, created_at, zone, "
                "first_due, channel, conversation) values(?, ?, ?, ?, ?, ?, ?, 'pending', ?, ?, ?, ?, ?)",
                (
                    *(task_id, sender, text, due_text, due_at, repeat, action, time.time()),
                    *(zone or "UTC", due_text, channel, conversation),
                ),
            )
            return task_id

        return await self._database.write(work)

    async def list(self, sender: str) -> builtins.list[Task]:
        """Pending tasks, the one due first before the others."""
        query = (
            f"select {_COLUMNS} from tasks where sender = ? and status = 'pending' "
            "order by due_at is null, due_at, id"
        )
        rows = await self._database.read(lambda db: [*db.execute(query, (sender,))])
        return [_task(row) for row in rows]

    async def cancel(self, sender: str, id_prefix: str) -> str:
        """Cancel a task of one's own by the start of its id, and give the whole id.

        Raises:
            StoreError: none of the sender's tasks begins so, or several do.
        """

        def work(db: apsw.Connection) -> str:
            task_id = _own(db, sender, id_prefix)
            db.execute("update tasks set status = 'cancelled' where id = ?", (task_id,))
            return task_id

        return await self._database.write(work)

    async def update(
        self,
        sender: str,
        id_prefix: str,
        *,
        text: str | None = None,
        due: datetime | None = None,
        repeat: str | None = None,
    ) -> Task:
        """Change a task of one's own by the start of its id; what is not given stays.

        Raises:
            StoreError: none of the sender's tasks begins so, or several do.
            ConfigError: nothing repeats so.
        """
        new_repeat = None if repeat is None else check_repeat(repeat)

        def work(db: apsw.Connection) -> Task:
            task_id = _own(db, sender, id_prefix)
            zone = str(db.execute("select zone from tasks where id = ?", (task_id,)).get)
            when = _zoned(due, zone)
            due_text = when.isoformat() if when else None
            db.execute(
                "update tasks set text = coalesce(?, text), repeat = coalesce(?, repeat), "
                "due = coalesce(?, due), first_due = coalesce(?, first_due), due_at = coalesce(?, due_at) "
                "where id = ?",
                (text and storable(text.strip()), new_repeat, due_text, due_text, stamp(when), task_id),
            )
            return _task(db.execute(f"select {_COLUMNS} from tasks where id = ?", (task_id,)).fetchone())

        return await self._database.write(work)

    async def next_due(self) -> float | None:
        """When the next task is due that is to be told somewhere, in seconds since 1970."""
        query = "select min(due_at) from tasks where status = 'pending' and channel <> ''"
        found = await self._database.read(lambda db: db.execute(query).get)
        return None if found is None else float(found)

    async def fire(
        self, now: float, *, acting: Collection[str] = (), channels: Collection[str] | None = None
    ) -> builtins.list[Task]:
        """Tell all tasks that are due, each with its next time: at once, so exactly once.

        A reminder goes into the outbox. What is to be done goes into the inbox, where the channel is one of
        those in which somebody acts; elsewhere the person is reminded of it. Where `channels` are given, only
        their tasks are told. A task whose time makes no sense is set aside: the others are told all the same.
        """
        query = (
            f"select {_COLUMNS}, sender, due_at, attempts, coalesce(first_due, due) from tasks "
            "where status = 'pending' and due_at <= ?1 and channel <> '' "
            "and (?2 is null or channel in (select value from json_each(?2))) order by due_at, id"
        )
        among = None if channels is None else json.dumps(sorted(channels))

        def work(db: apsw.Connection) -> builtins.list[Task]:
            told = []
            rows: builtins.list[Any] = db.execute(query, (now, among)).fetchall()
            for *columns, sender, due_at, attempts, first_due in rows:
                try:
                    task = _task(columns)
                    following = _next_time(task, first_due, now)
                except (StoreError, ValueError, OverflowError) as error:
                    _log.warning("a task was set aside, because of its time: %s", error)
                    db.execute("update tasks set status = 'failed' where id = ?", (columns[0],))
                    continue
                note = _late(task, due_at, now)
                if task.action == ACTION and task.channel in acting:
                    receive(db, _order(task, sender, f"{due_at}:{attempts}", note))
                else:
                    text = f"⏰ {task.text}{note}"
                    reminder = Outbound(channel=task.channel, conversation=task.conversation, text=text)
                    put(db, reminder, task_id=task.id)
                _move_on(db, task, following)
                told.append(task)
            return told

        return await self._database.write(work)


def _late(task: Task, due_at: float, now: float) -> str:
    late = now - due_at > _LATE_SECONDS
    return f" (due {task.due:%Y-%m-%d %H:%M}, told late)" if late and task.due else ""


def _order(task: Task, sender: str, time_of_it: str, note: str) -> Inbound:
    """A task that is to be done, as a message that nobody said; each of its times is one of its own."""
    return Inbound(
        channel=task.channel,
        conversation=task.conversation,
        sender=sender.partition(":")[2],
        text=f"[A task of yours is due: do it now, and tell what came of it.] {task.text}{note}",
        external_id=f"{_ORDER}{task.id}:{time_of_it}",
        kind="notice",
        origin="agent",
    )


def settle_order(db: apsw.Connection, inbox_id: str, *, failed: bool, now: float) -> bool:
    """What became of a task that was to be done. Whether it failed, and is tried again later."""
    told = db.execute("select external_id from inbox where id = ?", (inbox_id,)).get
    if not str(told).startswith(_ORDER):
        return False
    task_id = str(told).removeprefix(_ORDER).partition(":")[0]
    found = db.execute("select attempts, status, due_at, zone from tasks where id = ?", (task_id,)).fetchone()
    if found is None:
        return False
    attempts, status, due_at, zone = found
    if not failed or attempts >= _ATTEMPTS or status == "cancelled":
        db.execute("update tasks set attempts = 0 where id = ?", (task_id,))
        return False
    again = float(ceil(now + _AGAIN_SECONDS))
    if status == "pending":  # it repeats, and its next time may come before that
        again = min(again, float(due_at))
    due = datetime.fromtimestamp(again, _zone(str(zone))).isoformat()
    db.execute(
        "update tasks set status = 'pending', attempts = attempts + 1, due = ?, due_at = ? where id = ?",
        (due, again, task_id),
    )
    return True


def _next_time(task: Task, first_due: str, now: float) -> datetime | None:
    """When a task is due again, by the clock of its zone; never, if it does not repeat."""
    first = _zoned(datetime.fromisoformat(first_due), task.zone) or datetime.now(UTC)
    return next_due(first.astimezone(_zone(task.zone)), task.repeat, datetime.fromtimestamp(now, UTC))


def _move_on(db: apsw.Connection, task: Task, following: datetime | None) -> None:
    if following is None:
        db.execute("update tasks set status = 'done' where id = ?", (task.id,))
    else:
        row = (following.isoformat(), following.timestamp(), task.id)
        db.execute("update tasks set due = ?, due_at = ? where id = ?", row)


def _own(db: apsw.Connection, sender: str, id_prefix: str) -> str:
    """The id of a sender's own pending task. Raises StoreError."""
    found = [
        str(row[0])
        for row in db.execute(
            "select id from tasks where sender = ? and status = 'pending' and substr(id, 1, ?) = ?",
            (sender, len(id_prefix), id_prefix),
        )
    ]
    if len(found) != 1 or not id_prefix:
        what = "No task" if not found else f"{len(found)} tasks"
        raise StoreError(f"{what} of yours begins with {id_prefix!r}: give more of its id.")
    return found[0]


def _zoned(due: datetime | None, zone: str) -> datetime | None:
    """A time with its zone; one without an offset is on the wall there.

    Raises:
        StoreError: there is no such zone, or nothing can be due then.
    """
    found = _zone(zone)
    if due is None:
        return None
    if not _FIRST_YEAR <= due.year <= _LAST_YEAR:
        raise StoreError(f"Nothing can be due in the year {due.year}: give one from {_FIRST_YEAR} on.")
    return due if due.tzinfo is not None else due.replace(tzinfo=found)


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name or "UTC")
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise StoreError(f"There is no time zone {name!r}: write it like Europe/Lisbon.") from error


def _task(row: Any) -> Task:
    task_id, text, due, repeat, action, zone, channel, conversation = row
    return Task(
        id=task_id,
        text=text,
        due=datetime.fromisoformat(due) if due else None,
        repeat=repeat,
        action=action,
        zone=zone,
        channel=channel,
        conversation=conversation,
    )
