"""What the assistant knows how to do: skills, in one of four ways."""

from __future__ import annotations

from functools import lru_cache
from itertools import compress
from operator import not_

from weft.sources.base import Request, nothing, piece, under_title
from weft.types.escape import one_line
from weft.types.recipe import Layer, SkillsMode
from weft.types.section import Keep, Offer, Section, Stability, Withheld
from weft.workspace.skills import Skill, Skills

FULL_INTRO = "You have access to the following skills. Use them when relevant.\n\n"
ON_DEMAND_INTRO = (
    "You have access to the following skills. Use the read_skill tool to load a skill's full "
    "documentation when it clearly applies to the user's request.\n\n## Available skills\n"
)
_INTROS = {
    "full": (FULL_INTRO, ""),
    "triggered": (FULL_INTRO, ""),
    "readOnDemand": (ON_DEMAND_INTRO, "\n"),
}
"""What stands before and between the skills; in the summary it is the layer's title."""


async def offer(request: Request, layer: Layer) -> Offer:
    """Skills as the layer's mode shows them: whole, by name, in a list, or only when they are called for."""
    loaded = await (request.skills or request.files.load_skills(request.recipe))
    warnings = loaded.warnings
    withheld = [Withheld(title=out.name, tokens=0, reason=out.reason) for out in loaded.left_out]
    # Who cannot call `read_skill` is not told to: the same list, without that.
    mode = "summary" if layer.mode == "readOnDemand" and not request.calls_tools else layer.mode
    pieces = _pieces(loaded, layer.source, mode, layer.keep)
    if mode == "triggered":
        called = [skill.is_triggered_by(request.message) for skill in loaded.usable]
        withheld += [_idle(request, skill) for skill in compress(loaded.usable, map(not_, called))]
        pieces = tuple(compress(pieces, called))
    if not pieces:
        return nothing(layer, warnings=warnings, withheld=tuple(withheld))
    intro, join = _INTROS.get(mode, (None, "\n"))
    return under_title(layer, pieces, intro=intro, join=join, withheld=tuple(withheld), warnings=warnings)


@lru_cache(maxsize=8)
def _pieces(skills: Skills, source: str, mode: SkillsMode, keep: Keep) -> tuple[Section, ...]:
    """Every skill as text, written once for as long as no file changes."""
    layer = Layer(source=source, mode=mode, keep=keep)
    why = f"skills are shown as {mode}"
    return tuple(
        piece(layer, _text(skill, mode), title=skill.name, why=why, stability=Stability.STATIC)
        for skill in skills.usable
    )


def _text(skill: Skill, mode: SkillsMode) -> str:
    name, description = one_line(skill.name), one_line(skill.description)
    if mode == "summary":
        return f"- {name}: {description or first_line(skill.body)}".rstrip(": ")
    if mode == "readOnDemand":
        return f"- **{name}**: {description or '(no description)'}"
    about = f"{skill.description}\n\n" if skill.description else ""
    return f"## {name}\n{about}{skill.body.strip()}\n\n"


def first_line(body: str) -> str:
    """The first line of a body that says something; a heading only if there is nothing else."""
    lines = [text for line in body.splitlines() if (text := line.strip()).strip("-*_=# ")]
    plain = [line for line in lines if not line.startswith("#")]
    return one_line((plain or lines or [""])[0].lstrip("#").strip("-*_= "))


def _idle(request: Request, skill: Skill) -> Withheld:
    reason = "its trigger is not in the message" if skill.trigger else "it has no trigger"
    return Withheld(title=skill.name, tokens=request.counter.text(skill.body), reason=reason)
