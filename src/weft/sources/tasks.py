"""What is still to be done for the person."""

from __future__ import annotations

from weft.sources.base import BuildRequest, Options, pieces
from weft.types.escape import one_line
from weft.types.memory import Task
from weft.types.section import Offer, Origin, Stability


async def offer(request: BuildRequest, options: Options) -> Offer:
    """Offer pending tasks by due time. Nothing is looked up if the message does not need it."""
    if request.store is None or not request.needs.pending_tasks or not request.sender:
        return Offer()
    tasks = sorted(
        await request.store.tasks.list(request.sender),
        key=lambda task: (task.due is None, request.local(task.due or request.now), task.id),
    )
    texts = [(_line(task, request), task.text[:48]) for task in tasks]
    ids = [task.id for task in tasks]
    return Offer(
        pieces=pieces(texts, why="pending", stability=Stability.TURN, origin=Origin.USER, ids=ids),
        existing=frozenset(ids),
    )


def _line(task: Task, request: BuildRequest) -> str:
    due = f"{request.local(task.due):%Y-%m-%d %H:%M}" if task.due else "any time"
    what = f"{one_line(task.text)} [{one_line(task.action)}]"
    return f"- [{one_line(task.id[:8])}] {what} (due: {due}, {one_line(task.repeat)})"
