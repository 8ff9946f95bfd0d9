"""What was said in other conversations and bears on this message."""

from __future__ import annotations

from weft.sources.base import Request, nothing, piece, under_title
from weft.types.escape import one_line
from weft.types.recipe import Layer
from weft.types.search import Recalled
from weft.types.section import Offer, Origin, Stability


async def offer(request: Request, layer: Layer) -> Offer:
    """The best few lines of the sender's other conversations; not even looked for if not needed."""
    if request.kept.recall is None or not request.needs.recall or not request.sender:
        return nothing(layer)
    limit = 5 if layer.limit is None else layer.limit
    hits = await request.kept.recall.recall(
        request.message, sender=request.sender, session_id=request.session_id, limit=limit
    )
    pieces = [
        piece(
            layer,
            line(hit, request, layer.max_chars),
            title=f"{hit.speaker}: {one_line(hit.text)[:40]}",
            why="recalled for this message",
            stability=Stability.TURN,
            origin=Origin.USER,
        )
        for hit in hits
    ]
    return under_title(layer, pieces)


def line(hit: Recalled, request: Request, max_chars: int) -> str:
    when = f"{request.local(hit.timestamp):%Y-%m-%d %H:%M}" if hit.timestamp else "some time ago"
    return f"- [{when}] {one_line(hit.speaker)}: {one_line(hit.text[:max_chars])}"
