"""Standing instructions: what a person told the assistant to always do, and how many of them are shown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from weft.tokens import count

MAX_INSTRUCTIONS = 40
MAX_INSTRUCTION_TOKENS = 2_000
"""How many instructions of one person are shown, and how many tokens their texts have in all."""
_ENDS = " \t\r\n.!。！．"


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingInstruction:
    """One lasting instruction of a person, in their own words.

    The person pinned it, or Weft recognized it in a message: then `session_id` and `message`, the number of
    that message, say where, while the message is stored. One that has ended was removed.
    """

    id: str
    text: str
    pinned: bool = False
    session_id: str = ""
    message: int | None = None
    created_at: datetime | None = None
    ended_at: datetime | None = None


def instruction_key(text: str) -> str:
    """Return what two texts of the same instruction share: case, spaces and the last period do not count."""
    return " ".join(text.split()).strip(_ENDS).casefold()


def without_copies(instructions: Iterable[StandingInstruction]) -> list[StandingInstruction]:
    """Return each instruction once. Of several with the same text a pinned one stays, else the first."""
    by_key: dict[str, StandingInstruction] = {}
    for one in instructions:
        known = by_key.setdefault(instruction_key(one.text), one)
        if one.pinned and not known.pinned:
            by_key[instruction_key(one.text)] = one
    return list(by_key.values())


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


def numbered_instruction(
    instructions: Sequence[StandingInstruction], which: str
) -> StandingInstruction | None:
    """Find an instruction by its number in the list, or by the start of its id if only one begins so."""
    which = which.strip().lower()
    if which.isdecimal() and 1 <= int(which) <= len(instructions):
        return instructions[int(which) - 1]
    matches = [one for one in instructions if which and one.id.startswith(which)]
    return matches[0] if len(matches) == 1 else None
