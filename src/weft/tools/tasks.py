"""Tools for tasks: "remind me tomorrow at nine" becomes a task that fires in the same conversation."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime

from weft.errors import ToolError
from weft.store.people import Tasks
from weft.store.rules import TaskLimits
from weft.tools.base import Tool
from weft.tools.function import tool_from
from weft.types.escape import one_line
from weft.types.memory import Task
from weft.types.request import Caller

SOURCE = "Weft itself"
_NO_REMINDER = (
    "No reminder can reach them here: it stays in their list of pending tasks until it is cancelled."
)
ZoneOf = Callable[[str], Awaitable[str]]
"""The time zone of a person."""


class TaskTools:
    """What a person can have done for them. Whose tasks they are comes from the caller."""

    def __init__(self, tasks: Tasks, zone_of: ZoneOf, limits: TaskLimits) -> None:
        self._tasks, self._zone_of, self._limits = tasks, zone_of, limits

    async def create_task(
        self, text: str, caller: Caller, due: str = "", repeat: str = "once", do: bool = False
    ) -> str:
        """Remind the person of something at a time, or do something yourself then; they are told here.

        Args:
            text: What to remind them of, as they should read it; or what you are to do.
            due: When, on their own clock: YYYY-MM-DD HH:MM. Empty for a task without a time.
            repeat: once, daily, weekdays, weekly, monthly, or five fields of cron.
            do: true if you are to do it yourself at that time and tell them what came of it.
        """
        if do and not (due.strip() and caller.conversation):
            raise ToolError("what you are to do needs a time, and a place where you can tell of it")
        if do and not caller.is_attended and not self._limits.from_tasks:
            raise ToolError(
                "nobody asked for this now, so you cannot give yourself something to do: create a reminder "
                "without `do`, or tell the person what you would do"
            )
        # Without a place no reminder can be sent: the task stays pending, and every turn shows it.
        place = caller.channel if caller.conversation else ""
        task_id = await self._tasks.add(
            caller.sender,
            text,
            _time(due),
            repeat,
            action="action" if do else "reminder",
            zone=await self._zone_of(caller.sender),
            channel=place,
            conversation=caller.conversation,
            asked_by=", ".join(caller.outside),
            limits=self._limits,
        )
        task = next((task for task in await self._tasks.list(caller.sender) if task.id == task_id), None)
        answer = f"kept: {line(task)}" if task else f"kept as {task_id[:8]}"
        return answer if place or not due else f"{answer}. {_NO_REMINDER}"

    async def list_tasks(self, caller: Caller) -> str:
        """List the person's pending tasks with their ids."""
        return "\n".join(map(line, await self._tasks.list(caller.sender))) or "(no tasks)"

    async def update_task(
        self,
        id: str,  # noqa: A002
        caller: Caller,
        text: str = "",
        due: str = "",
        repeat: str = "",
    ) -> str:
        """Change a task of the person; what is left empty stays as it is.

        Args:
            id: The id of the task, or its first characters.
            text: What to remind them of.
            due: When, on their own clock: YYYY-MM-DD HH:MM.
            repeat: once, daily, weekdays, weekly, monthly, or five fields of cron.
        """
        if not caller.is_attended and not self._limits.from_tasks:
            raise ToolError(
                "nobody asked for this now, so no task is changed: tell the person what you would change"
            )
        changed = await self._tasks.update(
            caller.sender, id, text=text or None, due=_time(due), repeat=repeat or None, limits=self._limits
        )
        return f"changed: {line(changed)}"

    async def cancel_task(self, id: str, caller: Caller) -> str:  # noqa: A002
        """Cancel a task of the person.

        Args:
            id: The id of the task, or its first characters.
        """
        return f"cancelled {(await self._tasks.cancel(caller.sender, id))[:8]}"


def task_tools(tasks: Tasks, zone_of: ZoneOf, limits: TaskLimits | None = None) -> list[Tool]:
    tools = TaskTools(tasks, zone_of, limits or TaskLimits())
    return [
        tool_from(tools.create_task, source=SOURCE, kind="tasks", order="remind"),
        tool_from(tools.list_tasks, source=SOURCE, kind="read"),
        tool_from(tools.update_task, source=SOURCE, kind="tasks"),
        tool_from(tools.cancel_task, source=SOURCE, kind="tasks", order="cancel"),
    ]


def line(task: Task) -> str:
    """Write a task as a line for people."""
    due = f"{task.due:%a %Y-%m-%d %H:%M}" if task.due else "any time"
    kind = "" if task.action == "reminder" else f" [{one_line(task.action)}]"
    return f"[{task.id[:8]}] {one_line(task.text)}{kind} ({due}, {task.repeat})"


def _time(text: str) -> datetime | None:
    if not text.strip():
        return None
    try:
        return datetime.fromisoformat(text.strip())
    except ValueError:
        raise ToolError(f"{text!r} is no time: write it as YYYY-MM-DD HH:MM") from None
