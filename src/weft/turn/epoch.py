"""A build inside an epoch: it goes on with the frozen prefix while that is possible, and begins a new one."""

from __future__ import annotations

from dataclasses import replace

from weft.context.epoch import FULL, EpochPlan, begun, continued, why_ended
from weft.context.plan import Materials
from weft.context.roles import with_known_roles
from weft.offload import offloaded
from weft.sources.base import BuildRequest
from weft.turn.history import History, read_unfolded
from weft.types.epoch import Epoch, EpochView

FIRST = "start: the first message of the session"


async def decide_in_epoch(
    request: BuildRequest, materials: Materials, history: History, *, size: int
) -> EpochPlan:
    """Plan a request in the running epoch of its session, or as the first of a new one.

    Raises:
        BudgetExceeded: what must be shown is too large.
    """
    view, recipe = history.view or EpochView(), request.recipe_digest
    why = _ended(view)
    if view.epoch is not None:
        why = why_ended(view.epoch, materials, recipe=recipe, now=request.now)
        if not why:
            going_on = await offloaded(size, continued, materials, view)
            if going_on is not None:
                return going_on
            why = FULL
        opened = await read_unfolded(request, history.fold)
        tail, _ = with_known_roles(opened.tail, request.recipe)
        materials = replace(materials, tail=tail)
    start = Epoch(number=view.count + 1, why=why, recipe=recipe)
    return await offloaded(size, begun, materials, start, is_full=why == FULL)


def _ended(view: EpochView) -> str:
    """Return why there is no running epoch."""
    if view.ended_why == "full":
        return FULL
    return f"{view.ended_why}: the last epoch ended with it" if view.ended_why else FIRST
