"""What is still to be done for the person."""

from __future__ import annotations

from weft.sources.base import Request, nothing, piece, under_title
from weft.types.escape import one_line
from weft.types.memory import Task
from weft.types.recipe import Layer
from weft.types.section import Offer, Origin, Stability


async def offer(request: Request, layer: Layer) -> Offer:
    """Pending tasks by due time; not even asked for if not needed."""
    if request.kept.tasks is None or not request.needs.pending_tasks or not request.sender:
        return nothing(layer)
    listed = await request.kept.tasks.list(request.sender)
    tasks = sorted(
        listed, key=lambda task: (task.due is None, request.local(task.due or request.now), task.id)
    )
    pieces = [
        piece(
            layer,
            line(task, request),
            title=task.text[:48],
            why="pending",
            stability=Stability.TURN,
            origin=Origin.USER,
        )
        for task in tasks
    ]
    return under_title(layer, pieces)


def line(task: Task, request: Request) -> str:
    due = f"{request.local(task.due):%Y-%m-%d %H:%M}" if task.due else "any time"
    what = f"{one_line(task.text)} [{one_line(task.action)}]"
    return f"- [{one_line(task.id[:8])}] {what} (due: {due}, {one_line(task.repeat)})"
