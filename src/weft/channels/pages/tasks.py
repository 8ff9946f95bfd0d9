"""The page of tasks: what is to be done, and when."""

from __future__ import annotations

from datetime import datetime

from starlette.requests import Request
from starlette.responses import Response

from weft.channels.pages.blocks import BlockPages
from weft.channels.pages.desk import Desk, Work
from weft.channels.pages.places import see_other
from weft.errors import InvalidEdit
from weft.types.person import ASSISTANT

REPEATS = ("once", "daily", "weekdays", "weekly", "monthly")


class TaskPages:
    """The tasks of a person. A reminder comes where they talk, in a terminal or on Telegram."""

    def __init__(self, desk: Desk, blocks: BlockPages) -> None:
        self._desk, self._whose = desk, blocks.whose

    def all(self) -> list[tuple[str, str, Work]]:
        return [
            ("/tasks", "GET", self.list),
            ("/tasks", "POST", self.add),
            ("/tasks/change", "POST", self.change),
            ("/tasks/cancel", "POST", self.cancel),
        ]

    async def list(self, request: Request) -> Response:
        """List what is pending."""
        whose, store = await self._whose(request), await self._desk.open_store()
        return await self._desk.html(
            request,
            "tasks",
            title="Tasks",
            whose=whose,
            tasks=await store.tasks.list(whose.person),
            repeats=REPEATS,
        )

    async def add(self, request: Request) -> Response:
        """Add a task; the owner's is told in the terminal, and every turn shows it."""
        whose, form = await self._whose(request), await self._desk.form(request)
        text, due = form.get("text", "").strip(), _time(form.get("due", ""))
        if not text:
            raise InvalidEdit("The task is empty: say what is to be done.")
        action = "action" if form.get("do") == "on" else "reminder"
        if action == "action" and due is None:
            raise InvalidEdit("What the assistant is to do needs a time.")
        store = await self._desk.open_store()
        is_owner = whose.agent_id == ASSISTANT
        await store.tasks.add(
            "terminal:owner" if is_owner else whose.person,
            text,
            due,
            form.get("repeat", "once").strip() or "once",
            action=action,
            channel="terminal" if is_owner else "",
            conversation="chat" if is_owner else "",
        )
        return see_other(whose.place("/tasks"))

    async def change(self, request: Request) -> Response:
        """Change the text, the time or the repetition of a task."""
        whose, form = await self._whose(request), await self._desk.form(request)
        store = await self._desk.open_store()
        await store.tasks.update(
            whose.person,
            form.get("id", ""),
            text=form.get("text") or None,
            due=_time(form.get("due", "")),
            repeat=form.get("repeat") or None,
        )
        return see_other(whose.place("/tasks"))

    async def cancel(self, request: Request) -> Response:
        """Cancel a task."""
        whose, form = await self._whose(request), await self._desk.form(request)
        await (await self._desk.open_store()).tasks.cancel(whose.person, form.get("id", ""))
        return see_other(whose.place("/tasks"))


def _time(text: str) -> datetime | None:
    """Read a time as a browser writes it."""
    if not text.strip():
        return None
    try:
        return datetime.fromisoformat(text.strip())
    except ValueError:
        raise InvalidEdit(f"{text!r} is no time: write it as YYYY-MM-DD HH:MM.") from None
