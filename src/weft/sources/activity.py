"""What has happened lately, by whom."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from weft.sources.base import Request, nothing, piece, under_title
from weft.types.escape import one_line
from weft.types.memory import ActivityEntry
from weft.types.recipe import Layer
from weft.types.section import Offer, Origin, Stability, Withheld

_LATELY = timedelta(hours=24)


async def offer(request: Request, layer: Layer) -> Offer:
    """The newest entries of the last 24 hours, oldest first; nothing lately, nothing said."""
    if request.kept.activity is None:
        return nothing(layer)
    limits = (request.activity_limit, layer.limit, 15)
    limit = next(number for number in limits if number is not None)
    recent = await _recent(request, request.now - _LATELY, limit)
    entries = recent[max(len(recent) - limit, 0) :]
    older = recent[: len(recent) - len(entries)]
    pieces = [
        piece(
            layer,
            line(entry, request),
            title=entry.text[:48],
            why="happened in the last 24 hours",
            stability=Stability.TURN,
            origin=Origin.AGENT,
        )
        for entry in entries
    ]
    newest_last = tuple(float(at) for at in range(len(pieces)))
    withheld: tuple[Withheld, ...] = ()
    if older:
        cost = sum(request.counter.text(line(entry, request)) for entry in older)
        reason = f"older than the newest {limit}"
        withheld = (Withheld(title=f"{len(older)} entries", tokens=cost, reason=reason, count=len(older)),)
    return under_title(layer, pieces, worth=newest_last, withheld=withheld)


def line(entry: ActivityEntry, request: Request) -> str:
    who = "[SYSTEM]" if not entry.agent else f"[AGENT:{one_line(entry.agent)}]"
    if entry.agent and entry.agent == request.agent_id:
        who = "[YOU]"
    return f"[{request.local(entry.at):%H:%M}] {who}: {one_line(entry.text)}"


async def _recent(request: Request, since: datetime, limit: int) -> list[ActivityEntry]:
    kept = request.kept.activity
    if isinstance(kept, Sequence):
        entries = [entry for entry in kept if isinstance(entry, ActivityEntry)]
    elif kept is not None:
        entries = list(await kept.recent(request.agent_id, since=since, limit=limit))
    timed = [(request.local(entry.at), entry) for entry in entries]
    return [entry for at, entry in sorted(timed, key=lambda one: one[0]) if at >= since]
