"""Rules that every storage backend shares, as functions without a database.

They decide when a task fires and when it is due again, when a turn counts as interrupted, which facts are
stored, how long messages stay in the mailbox, and how changes of memory are described.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from math import ceil
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from weft.errors import StoreError
from weft.types.envelope import Inbound, Outbound
from weft.types.facts import problem_with
from weft.types.memory import ActivityEntry, Task
from weft.types.person import is_person_author
from weft.types.repeat import next_due

SAME_TASK_SECONDS = 30 * 60
"""Two tasks with the same text whose times differ by no more than this are one task."""
MAIL_SECONDS = 30 * 86_400
"""Answered and delivered messages are deleted from the mailbox after this time. They stay in the log."""
RESULT_SECONDS = 30 * 86_400
"""Long results of tools are deleted after this time. What was shown of them stays in the log."""
MOST_RESULTS = 1_000
"""How many long results of tools are stored; the oldest are deleted first."""
DENIAL_SECONDS = 365 * 86_400
"""Refusals are deleted after this time."""
MIN_REPEAT_SECONDS = 60.0
"""A task repeats no more often than this, unless the settings say otherwise."""
_TURN_SECONDS = 3600.0
_LATE_SECONDS = 5 * 60
_SLACK_SECONDS = 2.0
"""A task fires a moment after it is due, and the next time is counted from there."""
_CHECKED_TIMES = 60
_RETRY_SECONDS = 2 * 60
_MAX_ATTEMPTS = 3
_FIRST_YEAR, _LAST_YEAR = 1970, 9000
_ACTION = "action"
_ORDER = "task:"
_VERBS = {
    "edit": "changed",
    "overwrite": "overwrote",
    "undo": "took back a change of",
    "redo": "brought back a change of",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskLimits:
    """Limits on tasks, so that they cannot breed.

    A person has at most `max_pending` tasks that wait, and a task repeats at most every `min_repeat_seconds`.
    A task that the assistant does by itself creates such tasks only if `from_tasks` is set.
    """

    max_pending: int = 20
    min_repeat_seconds: float = MIN_REPEAT_SECONDS
    from_tasks: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DueTask:
    """A task that is due: when it is due now, when it was due first, and how often it was retried."""

    task: Task
    sender: str
    due_at: float
    first_due: str
    attempts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Firing:
    """The effect of a due task: a message to a person or to the assistant, and the next due time, if any."""

    message: Inbound | Outbound
    next_due: datetime | None


def fire(
    due: DueTask, now: float, acting: Collection[str], min_repeat_seconds: float = MIN_REPEAT_SECONDS
) -> Firing:
    """Decide what a due task does. It is due again after `min_repeat_seconds` at the earliest.

    A reminder is sent to the conversation that the task came from. A task with an action becomes a message
    for the assistant if its channel is one of `acting`; in other channels the person is reminded of it.

    Raises:
        StoreError, ValueError, OverflowError: the due time or the zone of the task is invalid.
    """
    task = due.task
    following = _next_time(task, due.first_due, now, min_repeat_seconds)
    is_late = now - due.due_at > _LATE_SECONDS and task.due is not None
    text = f"{task.text} (due {task.due:%Y-%m-%d %H:%M}, told late)" if is_late else task.text
    if task.action == _ACTION and task.channel in acting:
        return Firing(message=_order(due, text), next_due=following)
    reminder = Outbound(channel=task.channel, conversation=task.conversation, text=f"⏰ {text}")
    return Firing(message=reminder, next_due=following)


def _order(due: DueTask, text: str) -> Inbound:
    """Return the message that orders the assistant to do a task. Each due time has an id of its own."""
    return Inbound(
        channel=due.task.channel,
        conversation=due.task.conversation,
        sender=due.sender.partition(":")[2],
        text=f"[A task of yours is due: do it now, and tell what came of it.] {text}",
        external_id=f"{_ORDER}{due.task.id}:{due.due_at}:{due.attempts}",
        kind="notice",
        origin="agent",
    )


def ordered_task(external_id: str) -> str | None:
    """Return the id of the task that a message orders the assistant to do; None for other messages."""
    is_order = external_id.startswith(_ORDER)
    return external_id.removeprefix(_ORDER).partition(":")[0] if is_order else None


def retry_at(status: str, attempts: int, due_at: float, now: float) -> float | None:
    """Return when a failed task is retried; None if it was cancelled or retried too often."""
    if status == "cancelled" or attempts >= _MAX_ATTEMPTS:
        return None
    retry = float(ceil(now + _RETRY_SECONDS))
    # A task that repeats is still pending, and its next due time may come earlier.
    return min(retry, due_at) if status == "pending" else retry


def check_task(text: str, due: datetime | None, repeat: str) -> None:
    """Raise StoreError for a task without text, or one that repeats and has no time."""
    if not text:
        raise StoreError("The task is empty: say what is to be done.")
    if repeat != "once" and due is None:
        raise StoreError("A task that repeats needs a time: say when it is due first.")


def in_zone(due: datetime | None, zone: str) -> datetime | None:
    """Return a due time with an offset. A time without one is local time in the zone.

    Raises:
        StoreError: the zone is unknown, or the year is out of range.
    """
    place = find_zone(zone)
    if due is None:
        return None
    if not _FIRST_YEAR <= due.year <= _LAST_YEAR:
        years = f"{_FIRST_YEAR} to {_LAST_YEAR}"
        raise StoreError(f"Nothing can be due in the year {due.year}: give a year from {years}.")
    return due if due.tzinfo is not None else due.replace(tzinfo=place)


def find_zone(name: str) -> ZoneInfo:
    """Return a time zone by its name; an empty name is UTC. Raises StoreError if the name is unknown."""
    try:
        return ZoneInfo(name or "UTC")
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise StoreError(f"There is no time zone {name!r}: write it like Europe/Lisbon.") from error


def _next_time(task: Task, first_due: str, now: float, min_repeat_seconds: float) -> datetime | None:
    first = in_zone(datetime.fromisoformat(first_due), task.zone) or datetime.now(UTC)
    # A task that fires late is not due again a moment later.
    after = now if task.repeat == "once" else now + max(min_repeat_seconds - _SLACK_SECONDS, 0)
    return next_due(first.astimezone(find_zone(task.zone)), task.repeat, datetime.fromtimestamp(after, UTC))


def check_interval(due: datetime | None, repeat: str, min_repeat_seconds: float) -> None:
    """Raise StoreError for a task that would repeat more often than allowed."""
    times: list[datetime] = []
    moment = due
    while moment is not None and repeat != "once" and len(times) < _CHECKED_TIMES:
        times.append(moment)
        moment = next_due(due or moment, repeat, moment)
    gaps = [(later - earlier).total_seconds() for earlier, later in pairwise(times[1:])]
    if gaps and min(gaps) < min_repeat_seconds:
        raise StoreError(
            f"This task would repeat every {min(gaps):g} seconds, and {min_repeat_seconds:g} is the least: "
            "let it repeat less often, or lower `tasks.min_repeat_seconds`."
        )


def check_pending(count: int, max_pending: int) -> None:
    """Raise StoreError if a person has too many tasks already."""
    if count >= max_pending:
        raise StoreError(
            f"{count} tasks are pending already, and {max_pending} is the most: cancel some first, "
            "or raise `tasks.max_pending`."
        )


def is_interrupted(is_running: bool | None, began: float, now: float) -> bool:
    """Decide whether a turn that did not end counts as interrupted.

    `is_running`: whether the turn's process runs. None means that this process cannot know it; then the age
    of the turn decides.
    """
    return now - began > _TURN_SECONDS if is_running is None else not is_running


def check_fact(key: str, value: str, *, by_model: bool) -> None:
    """Raise StoreError for a fact that is not worth storing, with the reason."""
    if problem := problem_with(key, value, by_model=by_model):
        raise StoreError(problem)


def describe_changes(changes: Iterable[tuple[datetime, str, str, str, str]]) -> list[ActivityEntry]:
    """Describe changes of blocks, oldest first. The same change several times in a row is one entry.

    A change is a tuple: its time, author and kind, and the label and id of its block.
    """
    entries: list[tuple[tuple[str, str, str], ActivityEntry, int]] = []
    for at, author, kind, label, block_id in changes:
        key, times = (author, kind, block_id), 1
        if entries and entries[-1][0] == key:
            times = entries.pop()[2] + 1
        count = f" {times} times" if times > 1 else ""
        text, is_person = f"{_VERBS[kind]} the block {label!r}{count}", is_person_author(author)
        agent = "" if author == "system" or is_person else author
        entry = ActivityEntry(at=at, text=f"{author} {text}" if is_person else text, agent=agent)
        entries.append((key, entry, times))
    return [entry for _, entry, _ in entries]
