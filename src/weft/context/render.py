"""A plan, written out as the context that is sent."""

from __future__ import annotations

from weft.context.plan import Plan, shown_history
from weft.types.context import Context
from weft.types.receipt import Receipt
from weft.types.section import Place


def render(plan: Plan, receipt: Receipt) -> Context:
    """The context of a plan: system sections joined as the recipe says, history, the message."""
    recipe = plan.materials.recipe
    system = recipe.join.join(s.text for s in plan.sections if s.place == Place.SYSTEM)
    return Context(
        system_prompt=system,
        history=shown_history(plan),
        current_message=plan.materials.message,
        sections=plan.sections,
        tools=plan.materials.tools,
        mcp_servers=plan.materials.mcp_servers,
        form=recipe.form,
        tagged=recipe.tagged,
        receipt=receipt,
    )
