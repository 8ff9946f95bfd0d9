"""What is known about the person."""

from __future__ import annotations

from weft.sources.base import Request, nothing, piece, under_title
from weft.types.escape import one_line
from weft.types.recipe import Layer
from weft.types.section import Offer, Origin


async def offer(request: Request, layer: Layer) -> Offer:
    """One line per fact, sorted by key, on one line each so that none can pose as another."""
    if request.kept.facts is None or not request.sender:
        return nothing(layer)
    facts = sorted(await request.kept.facts.list(request.sender), key=lambda fact: fact.key)
    pieces = [
        piece(
            layer,
            f"- {one_line(fact.key)}: {one_line(fact.value)}",
            title=fact.key,
            why="known about this person",
            origin=Origin.USER,
        )
        for fact in facts
    ]
    return under_title(layer, pieces)
