"""What earlier conversations were about."""

from __future__ import annotations

from dataclasses import dataclass, replace

from weft.sources.base import BuildRequest, Options, pieces
from weft.types.escape import one_line
from weft.types.section import Offer, Origin, least_trusted


@dataclass(frozen=True, slots=True, kw_only=True)
class SummariesOptions(Options):
    limit: int = 3


async def offer(request: BuildRequest, options: SummariesOptions) -> Offer:
    if request.store is None or not request.sender:
        return Offer()
    summaries = await request.store.summaries.recent(request.channel, request.sender_id, options.limit)
    texts = [(f"- {one_line(summary.text)}", f"summary {at}") for at, summary in enumerate(summaries, 1)]
    why = "the newest summaries of earlier conversations"
    offered = pieces(texts, why=why, origin=Origin.AGENT)
    return Offer(
        pieces=tuple(
            replace(piece, origin=least_trusted((summary.origin,)))
            for piece, summary in zip(offered, summaries, strict=True)
        )
    )
