"""What earlier conversations were about."""

from __future__ import annotations

from weft.sources.base import Request, nothing, piece, under_title
from weft.types.escape import one_line
from weft.types.recipe import Layer
from weft.types.section import Offer, Origin


async def offer(request: Request, layer: Layer) -> Offer:
    if request.kept.summaries is None or not request.sender:
        return nothing(layer)
    limit = 3 if layer.limit is None else layer.limit
    summaries = await request.kept.summaries.recent(request.channel, request.sender_id, limit)
    pieces = [
        piece(
            layer,
            f"- {one_line(summary.text)}",
            title=f"summary {at}",
            why="the newest summaries of earlier conversations",
            origin=Origin.AGENT,
        )
        for at, summary in enumerate(summaries, 1)
    ]
    return under_title(layer, pieces)
