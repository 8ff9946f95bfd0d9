"""How many standing instructions of a person are shown, whatever the database is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from weft.tokens import count
from weft.types.instruction import StandingInstruction, instruction_key

MAX_INSTRUCTIONS = 40
MAX_INSTRUCTION_TOKENS = 2_000
"""How many instructions of one person are shown, and how many tokens their texts have in all."""


def split_by_limits(
    instructions: Sequence[StandingInstruction],
) -> tuple[list[StandingInstruction], list[StandingInstruction]]:
    """Split instructions, oldest first, into those that are shown and those that are withheld.

    Pinned ones are always shown. Of the others the oldest give way first.
    """
    pinned = [one for one in instructions if one.pinned]
    shown = {one.id for one in pinned}
    tokens = sum(count(one.text) for one in pinned)
    for one in reversed([one for one in instructions if not one.pinned]):
        tokens += count(one.text)
        if len(shown) >= MAX_INSTRUCTIONS or tokens > MAX_INSTRUCTION_TOKENS:
            break
        shown.add(one.id)
    return (
        [one for one in instructions if one.id in shown],
        [one for one in instructions if one.id not in shown],
    )


def problem_with_instruction(text: str, pinned: Iterable[str]) -> str | None:
    """Return why an instruction cannot be added beside the pinned ones, or None if it can."""
    if not instruction_key(text):
        return "The instruction is empty: say what to do from now on."
    others = list(pinned)
    if len(others) >= MAX_INSTRUCTIONS:
        return (
            f"{len(others)} instructions are pinned already, and {MAX_INSTRUCTIONS} is the most: "
            "remove one of them first."
        )
    tokens = count(text) + sum(map(count, others))
    if tokens > MAX_INSTRUCTION_TOKENS:
        return (
            f"With this one the pinned instructions would have {tokens:,} tokens, and "
            f"{MAX_INSTRUCTION_TOKENS:,} is the most: shorten it, or remove another one first."
        )
    return None
