"""Rules about tool calls, as the model reads them."""

from __future__ import annotations

from weft.sources.base import BuildRequest, NoOptions, piece
from weft.types.section import Offer, Stability


async def offer(request: BuildRequest, options: NoOptions) -> Offer:
    """Offer one bullet per rule; those about the first call come first."""
    rules = sorted(request.tool_rules, key=lambda rule: rule.kind != "start_constraint")
    pieces = tuple(
        piece(f"- {rule.sentence()}", title=rule.tool, why="a rule for tools", stability=Stability.STATIC)
        for rule in rules
    )
    return Offer(pieces=pieces, title_end="\n\n")
