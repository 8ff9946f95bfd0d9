"""What the assistant knows how to do: skills, in one of four ways."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import compress
from operator import not_

from weft.sources.base import BuildRequest, Options, pieces
from weft.types.escape import one_line
from weft.types.recipe import Reload, SkillsMode
from weft.types.section import Offer, Piece, Stability, Withheld
from weft.workspace.skills import Skill, Skills

FULL_INTRO = "You have access to the following skills. Use them when relevant.\n\n"
ON_DEMAND_INTRO = (
    "You have access to the following skills. Use the read_skill tool to load a skill's full "
    "documentation when it clearly applies to the user's request, before using that skill's tools."
    "\n\n## Available skills\n"
)
_INTROS = {
    "full": (FULL_INTRO, ""),
    "triggered": (FULL_INTRO, ""),
    "readOnDemand": (ON_DEMAND_INTRO, "\n"),
}
"""The texts before and between the skills, by mode. The mode "summary" has the layer's title instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillsOptions(Options):
    mode: SkillsMode = "full"
    reload: Reload | None = None


async def offer(request: BuildRequest, options: SkillsOptions) -> Offer:
    """Offer skills as the mode says: whole, by name, in a list, or only if the message has their trigger."""
    loaded = await request.skills
    withheld = [Withheld(title=out.name, tokens=0, reason=out.reason) for out in loaded.left_out]
    # A model without tools is not told to call `read_skill`: it gets the same list without that.
    calls_tools = request.model is None or request.model.calls_tools
    mode = "summary" if options.mode == "readOnDemand" and not calls_tools else options.mode
    offered = _pieces(loaded, mode)
    if mode == "triggered":
        triggered = [skill.is_triggered_by(request.message) for skill in loaded.usable]
        withheld += [_idle(request, skill) for skill in compress(loaded.usable, map(not_, triggered))]
        offered = tuple(compress(offered, triggered))
    intro, join = _INTROS.get(mode, (None, "\n"))
    return Offer(
        pieces=offered,
        intro=intro,
        join=join,
        withheld=tuple(withheld),
        warnings=loaded.warnings,
        files=len(loaded.usable),
        existing=None if mode == "triggered" else frozenset(piece.id for piece in offered),
    )


@lru_cache(maxsize=8)
def _pieces(skills: Skills, mode: SkillsMode) -> tuple[Piece, ...]:
    """Write every skill as text, once for as long as no file changes."""
    texts = ((_text(skill, mode), skill.name) for skill in skills.usable)
    ids = [skill.name for skill in skills.usable]
    return pieces(texts, why=f"skills are shown as {mode}", stability=Stability.STATIC, ids=ids)


def _text(skill: Skill, mode: SkillsMode) -> str:
    name, description = one_line(skill.name), one_line(skill.description)
    if mode == "summary":
        return f"- {name}: {description or first_line(skill.body)}".rstrip(": ")
    if mode == "readOnDemand":
        return f"- **{name}**: {description or '(no description)'}"
    about = f"{skill.description}\n\n" if skill.description else ""
    return f"## {name}\n{about}{skill.body.strip()}\n\n"


def first_line(body: str) -> str:
    """Return the first line of a body that says something; a heading only if there is nothing else."""
    lines = [text for line in body.splitlines() if (text := line.strip()).strip("-*_=# ")]
    plain = [line for line in lines if not line.startswith("#")]
    return one_line((plain or lines or [""])[0].lstrip("#").strip("-*_= "))


def _idle(request: BuildRequest, skill: Skill) -> Withheld:
    reason = "its trigger is not in the message" if skill.trigger else "it has no trigger"
    return Withheld(title=skill.name, tokens=request.counter.text(skill.body), reason=reason)
