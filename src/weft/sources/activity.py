"""What has happened lately, by whom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from weft.sources.base import BuildRequest, Options, entries_beyond, pieces
from weft.types.escape import one_line
from weft.types.memory import ActivityEntry
from weft.types.section import Offer, Origin, Stability

_LATELY = timedelta(hours=24)


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityOptions(Options):
    limit: int = 15


async def offer(request: BuildRequest, options: ActivityOptions) -> Offer:
    """Offer the newest entries of the last 24 hours, oldest first."""
    chosen = request.config.activity_entries_limit
    limit = options.limit if chosen is None else chosen
    recent = await _recent(request, limit)
    first = max(len(recent) - limit, 0)
    texts = [(_line(entry, request), entry.text[:48]) for entry in recent[first:]]
    older = [request.counter.text(_line(entry, request)) for entry in recent[:first]]
    why = "happened in the last 24 hours"
    return Offer(
        pieces=pieces(texts, why=why, stability=Stability.TURN, origin=Origin.AGENT),
        worth=tuple(float(at) for at in range(len(texts))),
        withheld=entries_beyond(f"older than the newest {limit}", older),
    )


def _line(entry: ActivityEntry, request: BuildRequest) -> str:
    who = "[SYSTEM]" if not entry.agent else f"[AGENT:{one_line(entry.agent)}]"
    if entry.agent and entry.agent == request.agent_id:
        who = "[YOU]"
    return f"[{request.local(entry.at):%H:%M}] {who}: {one_line(entry.text)}"


async def _recent(request: BuildRequest, limit: int) -> list[ActivityEntry]:
    activity, since = request.activity, request.now - _LATELY
    if activity is None:
        return []
    if not isinstance(activity, Sequence):
        activity = await activity.recent(request.agent_id, since=since, limit=limit)
    timed = [(request.local(entry.at), entry) for entry in activity]
    return [entry for at, entry in sorted(timed, key=lambda pair: pair[0]) if at >= since]
