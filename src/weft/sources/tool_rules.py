"""Rules about tool calls, as the model reads them."""

from __future__ import annotations

from weft.sources.base import BuildRequest, Options, pieces
from weft.types.section import Offer, Stability


async def offer(request: BuildRequest, options: Options) -> Offer:
    """Offer one bullet per rule; those about the first call come first."""
    rules = sorted(request.tool_rules, key=lambda rule: rule.kind != "start_constraint")
    texts = [(f"- {rule.sentence()}", rule.tool) for rule in rules]
    return Offer(
        pieces=pieces(texts, why="a rule for tools", stability=Stability.STATIC),
        title_end="\n\n",
        existing=frozenset(rule.tool for rule in rules),
    )
