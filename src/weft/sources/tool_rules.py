"""Rules about tool calls, told to the model."""

from __future__ import annotations

from weft.sources.base import Request, nothing, piece, under_title
from weft.types.recipe import Layer
from weft.types.section import Offer, Stability


async def offer(request: Request, layer: Layer) -> Offer:
    """The title, a blank line, and one bullet per rule: what must come first is said first."""
    rules = sorted(request.tool_rules, key=lambda rule: rule.kind != "start_constraint")
    if not rules:
        return nothing(layer)
    pieces = [
        piece(
            layer, f"- {rule.sentence()}", title=rule.tool, why="a rule for tools", stability=Stability.STATIC
        )
        for rule in rules
    ]
    return under_title(layer, pieces, intro=f"{layer.title}\n\n" if layer.title else "")
