"""What earlier conversations were about."""

from __future__ import annotations

from dataclasses import dataclass

from weft.sources.base import BuildRequest, Options, piece
from weft.types.escape import one_line
from weft.types.section import Offer, Origin


@dataclass(frozen=True, slots=True, kw_only=True)
class SummariesOptions(Options):
    limit: int = 3


async def offer(request: BuildRequest, options: SummariesOptions) -> Offer:
    if request.store is None or not request.sender:
        return Offer()
    summaries = await request.store.summaries.recent(request.channel, request.sender_id, options.limit)
    return Offer(
        pieces=tuple(
            piece(
                f"- {one_line(summary.text)}",
                title=f"summary {at}",
                why="the newest summaries of earlier conversations",
                origin=Origin.AGENT,
            )
            for at, summary in enumerate(summaries, 1)
        )
    )
