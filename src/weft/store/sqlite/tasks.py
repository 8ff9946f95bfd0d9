"""Tasks of people, and when they are due."""

from __future__ import annotations

import builtins
import json
import logging
import time
from collections.abc import Collection
from datetime import datetime
from secrets import token_hex
from typing import Any

import apsw

from weft.errors import StoreError, UnknownName
from weft.store.rules import (
    MIN_REPEAT_SECONDS,
    SAME_TASK_SECONDS,
    DueTask,
    TaskLimits,
    check_interval,
    check_pending,
    check_task,
    find_zone,
    fire,
    in_zone,
    ordered_task,
    retry_at,
)
from weft.store.sqlite.database import Repository
from weft.store.sqlite.identity import same_person
from weft.store.sqlite.mailbox import enqueue, receive
from weft.store.sqlite.rows import fetch, record, stamp, storable
from weft.types.envelope import Inbound
from weft.types.memory import Task
from weft.types.repeat import check_repeat

_log = logging.getLogger(__name__)
_COLUMNS = "id, text, due, repeat, action, zone, channel, conversation"


class SqliteTasks(Repository):
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
        asked_by: str = "",
        limits: TaskLimits | None = None,
    ) -> str:
        text, repeat, due = storable(text.strip()), check_repeat(repeat), in_zone(due, zone)
        check_task(text, due, repeat)
        if limits is not None:
            check_interval(due, repeat, limits.min_repeat_seconds)
        due_at, due_text = stamp(due), due.isoformat() if due else None

        def work(db: apsw.Connection) -> str:
            own = "from tasks where sender in (select value from json_each(?)) and status = 'pending'"
            senders = json.dumps(same_person(db, sender))
            same = db.execute(
                f"select id {own} and lower(text) = lower(?) "
                "and ((due_at is null and ?3 is null) or abs(due_at - ?3) <= ?4)",
                (senders, text, due_at, SAME_TASK_SECONDS),
            ).get
            if same is not None:
                return str(same)
            if limits is not None:
                check_pending(int(db.execute(f"select count(*) {own}", (senders,)).get), limits.max_pending)
            task_id = token_hex(10)  # people tell tasks apart by the first 8 characters
            db.execute(
                "insert into tasks(id, sender, text, due, due_at, repeat, action, status, created_at, zone, "
                "first_due, channel, conversation, asked_by) "
                "values(?, ?, ?, ?, ?, ?, ?, 'pending', ?, ?, ?, ?, ?, ?)",
                (
                    *(task_id, sender, text, due_text, due_at, repeat, action, time.time()),
                    *(zone or "UTC", due_text, channel, conversation, storable(asked_by)),
                ),
            )
            return task_id

        return await self._write(work)

    async def list(self, sender: str) -> builtins.list[Task]:
        query = (
            f"select {_COLUMNS} from tasks where sender in (select value from json_each(?)) "
            "and status = 'pending' order by due_at is null, due_at, id"
        )
        return await self._lookup(lambda db: fetch(db, Task, query, json.dumps(same_person(db, sender))))

    async def cancel(self, sender: str, id_prefix: str) -> str:
        def work(db: apsw.Connection) -> str:
            task_id = _own(db, sender, id_prefix)
            db.execute("update tasks set status = 'cancelled' where id = ?", (task_id,))
            return task_id

        return await self._write(work)

    async def update(
        self,
        sender: str,
        id_prefix: str,
        *,
        text: str | None = None,
        due: datetime | None = None,
        repeat: str | None = None,
        limits: TaskLimits | None = None,
    ) -> Task:
        new_repeat = None if repeat is None else check_repeat(repeat)

        def work(db: apsw.Connection) -> Task:
            task_id = _own(db, sender, id_prefix)
            zone = str(db.execute("select zone from tasks where id = ?", (task_id,)).get)
            when = in_zone(due, zone)
            due_text = when.isoformat() if when else None
            db.execute(
                "update tasks set text = coalesce(?, text), repeat = coalesce(?, repeat), "
                "due = coalesce(?, due), first_due = coalesce(?, first_due), due_at = coalesce(?, due_at) "
                "where id = ?",
                (text and storable(text.strip()), new_repeat, due_text, due_text, stamp(when), task_id),
            )
            [task] = fetch(db, Task, f"select {_COLUMNS} from tasks where id = ?", task_id)
            if limits is not None:
                check_interval(task.due, task.repeat, limits.min_repeat_seconds)
            return task

        return await self._write(work)

    async def next_due(self) -> float | None:
        query = "select min(due_at) from tasks where status = 'pending' and channel <> ''"
        return await self._value(float, query)

    async def fire(
        self,
        now: float,
        *,
        acting: Collection[str] = (),
        channels: Collection[str] | None = None,
        min_repeat_seconds: float = MIN_REPEAT_SECONDS,
    ) -> builtins.list[Task]:
        query = (
            f"select {_COLUMNS}, sender, due_at, attempts, coalesce(first_due, due) from tasks "
            "where status = 'pending' and due_at <= ?1 and channel <> '' "
            "and (?2 is null or channel in (select value from json_each(?2))) order by due_at, id"
        )
        among = None if channels is None else json.dumps(sorted(channels))

        def work(db: apsw.Connection) -> builtins.list[Task]:
            rows: builtins.list[Any] = db.execute(query, (now, among)).fetchall()
            fired = [_fire(db, row, now, acting, min_repeat_seconds) for row in rows]
            return [task for task in fired if task is not None]

        return await self._write(work)


def _fire(
    db: apsw.Connection, row: Any, now: float, acting: Collection[str], min_repeat_seconds: float
) -> Task | None:
    *columns, sender, due_at, attempts, first_due = row
    try:
        task = record(Task, _COLUMNS.split(", "), columns)
        due = DueTask(task=task, sender=sender, due_at=due_at, first_due=first_due, attempts=attempts)
        firing = fire(due, now, acting, min_repeat_seconds)
    except (StoreError, ValueError, OverflowError) as error:
        _log.warning("a task was set aside, because of its time: %s", error)
        db.execute("update tasks set status = 'failed' where id = ?", (columns[0],))
        return None
    if isinstance(firing.message, Inbound):
        receive(db, firing.message)
    else:
        enqueue(db, firing.message, task_id=task.id)
    if (due_next := firing.next_due) is None:
        db.execute("update tasks set status = 'done' where id = ?", (task.id,))
    else:
        row = (due_next.isoformat(), due_next.timestamp(), task.id)
        db.execute("update tasks set due = ?, due_at = ? where id = ?", row)
    return task


def record_task_outcome(db: apsw.Connection, inbox_id: str, *, failed: bool, now: float) -> bool:
    """Record how the work on a task ended. Returns whether it failed and is tried again later."""
    external_id = db.execute("select external_id from inbox where id = ?", (inbox_id,)).get
    task_id = ordered_task(str(external_id))
    row: Any = db.execute(
        "select status, attempts, due_at, zone from tasks where id = ?", (task_id,)
    ).fetchone()
    if row is None:
        return False
    status, attempts, due_at, zone = row
    again = retry_at(status, attempts, due_at, now) if failed else None
    if again is None:
        db.execute("update tasks set attempts = 0 where id = ?", (task_id,))
        return False
    due = datetime.fromtimestamp(again, find_zone(zone)).isoformat()
    db.execute(
        "update tasks set status = 'pending', attempts = attempts + 1, due = ?, due_at = ? where id = ?",
        (due, again, task_id),
    )
    return True


def _own(db: apsw.Connection, sender: str, id_prefix: str) -> str:
    """Return the id of a sender's own pending task. Raises StoreError unless exactly one begins so."""
    ids = [
        str(row[0])
        for row in db.execute(
            "select id from tasks where sender in (select value from json_each(?)) and status = 'pending' "
            "and substr(id, 1, ?) = ?",
            (json.dumps(same_person(db, sender)), len(id_prefix), id_prefix),
        )
    ]
    if len(ids) != 1 or not id_prefix:
        what = "No task" if not ids else f"{len(ids)} tasks"
        remedy = "give more of its id" if ids else "list them to see their ids"
        raise UnknownName(f"{what} of yours begins with {id_prefix!r}: {remedy}.")
    return ids[0]
