"""Rules about tool calls, told to the model."""

from __future__ import annotations

from weft.sources.base import Request, nothing, piece, under_title
from weft.types.neutral import one_line
from weft.types.recipe import Layer
from weft.types.rules import ToolRule
from weft.types.section import Offer, Stability


async def offer(request: Request, layer: Layer) -> Offer:
    """The title, a blank line, and one bullet per rule: what must come first is said first."""
    rules = sorted(request.tool_rules, key=lambda rule: rule.kind != "start_constraint")
    if not rules:
        return nothing(layer)
    pieces = [
        piece(
            layer, f"- {sentence(rule)}", title=rule.tool, why="a rule for tools", stability=Stability.STATIC
        )
        for rule in rules
    ]
    return under_title(layer, pieces, intro=f"{layer.title}\n\n" if layer.title else "")


def sentence(rule: ToolRule) -> str:
    """One rule in words."""
    tool, prior = one_line(rule.tool), one_line(rule.prior)
    return {
        "start_constraint": f"Call `{tool}` first before any other tools",
        "exit_loop": f"The conversation will end after calling `{tool}`",
        "continue_loop": f"The conversation will be continued after calling `{tool}`",
        "max_calls": f"Call `{tool}` at most {rule.limit} times",
        "requires_prior": f"Call `{tool}` only after calling `{prior}`",
    }[rule.kind]
