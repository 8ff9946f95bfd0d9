"""Rendering: a plan becomes the context that is sent."""

from __future__ import annotations

from weft.context.plan import ContextPlan
from weft.types.context import Context
from weft.types.escape import joined
from weft.types.message import Message
from weft.types.receipt import Receipt
from weft.types.section import Place


def render(plan: ContextPlan, receipt: Receipt) -> Context:
    """Render a plan: system sections joined as the recipe says, history, the message."""
    spec, recipe = plan.materials.spec, plan.materials.spec.recipe
    join = joined if recipe.tagged else str.join
    return Context(
        system_prompt=join(recipe.join, [s.text for s in plan.sections if s.place == Place.SYSTEM]),
        history=visible_history(plan),
        current_message=spec.message,
        parts=spec.parts,
        sections=plan.sections,
        tools=spec.tools,
        mcp_servers=plan.materials.mcp_servers,
        form=recipe.form,
        tagged=recipe.tagged,
        receipt=receipt,
    )


def visible_history(decided: ContextPlan) -> tuple[Message, ...]:
    """Return the messages of the window, after the summary of those that were folded."""
    summary = decided.materials.summary
    return (*((summary,) if summary else ()), *decided.window.messages(decided.cut))
