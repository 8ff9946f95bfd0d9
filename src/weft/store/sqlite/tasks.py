"""What is to be done for people."""

from __future__ import annotations

import builtins
import time
from datetime import datetime

import apsw

from weft.errors import StoreError
from weft.store.sqlite.database import Database
from weft.store.sqlite.rows import new_id, stamp, storable
from weft.types.records import Task

_SIMILAR_SECONDS = 30 * 60


class SqliteTasks:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(
        self,
        sender: str,
        text: str,
        due: datetime | None = None,
        repeat: str = "once",
        *,
        action: str = "reminder",
    ) -> str:
        """Keep a task and give its id; the same text due within half an hour is the same task."""
        text = storable(text.strip())
        if not text:
            raise StoreError("The task is empty: say what is to be done.")
        due_at = stamp(due)

        def work(db: apsw.Connection) -> str:
            same = db.execute(
                "select id from tasks where sender = ? and status = 'pending' and lower(text) = lower(?) "
                "and ((due_at is null and ?3 is null) or abs(due_at - ?3) <= ?4)",
                (sender, text, due_at, _SIMILAR_SECONDS),
            ).get
            if same is not None:
                return str(same)
            task_id = new_id()
            due_text = due.isoformat() if due else None
            row = (task_id, sender, text, due_text, due_at, repeat, action, "pending", time.time())
            db.execute(
                "insert into tasks(id, sender, text, due, due_at, repeat, action, status, created_at) "
                "values(?, ?, ?, ?, ?, ?, ?, ?, ?)",
                row,
            )
            return task_id

        return await self._database.write(work)

    async def list(self, sender: str) -> builtins.list[Task]:
        """Pending tasks, the one due first before the others."""
        query = (
            "select id, text, due, repeat, action from tasks where sender = ? and status = 'pending' "
            "order by due_at is null, due_at, id"
        )
        rows = await self._database.read(lambda db: list(db.execute(query, (sender,))))
        return [
            Task(
                id=i,
                text=text,
                due=datetime.fromisoformat(due) if due else None,
                repeat=repeat,
                action=action,
            )
            for i, text, due, repeat, action in rows
        ]

    async def cancel(self, sender: str, id_prefix: str) -> str:
        """Cancel a task of one's own by the start of its id, and give the whole id.

        Raises:
            StoreError: none of the sender's tasks begins so, or several do.
        """

        def work(db: apsw.Connection) -> str:
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
            db.execute("update tasks set status = 'cancelled' where id = ?", (found[0],))
            return found[0]

        return await self._database.write(work)
