"""What has happened lately, by whom."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from weft.sources.base import Request, nothing, piece, under_title
from weft.types.neutral import one_line
from weft.types.recipe import Layer
from weft.types.records import ActivityEntry
from weft.types.section import Offer, Origin, Stability

_LATELY = timedelta(hours=24)


async def offer(request: Request, layer: Layer) -> Offer:
    """The newest entries of the last 24 hours, oldest first; nothing lately, nothing said."""
    if request.kept.activity is None:
        return nothing(layer)
    limit = request.activity_limit if request.activity_limit is not None else layer.limit or 15
    entries = await _recent(request, request.now - _LATELY, limit)
    if not entries:
        return nothing(layer)
    pieces = [
        piece(
            layer,
            line(entry, request),
            title=one_line(entry.text)[:48],
            why="happened in the last 24 hours",
            stability=Stability.TURN,
            origin=Origin.AGENT,
        )
        for entry in entries
    ]
    newest_last = tuple(float(at) for at in range(len(pieces)))
    return under_title(layer, pieces, worth=newest_last)


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
    recent = [entry for at, entry in sorted(timed, key=lambda one: one[0]) if at >= since]
    return recent[-limit:] if limit > 0 else []
