"""Standing instructions: what a person told the assistant to always do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

ENDED = "ended:"
"""The start of the id under which an instruction that no longer holds is shown."""
_ENDS = " \t\r\n.!。！．"
_MOST_DIGITS = 4


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


def numbered_instruction(
    instructions: Sequence[StandingInstruction], which: str
) -> StandingInstruction | None:
    """Find an instruction by its number in the list, or by the start of its id if only one begins so.

    A few digits are always a number: an id may begin with them by chance.
    """
    which = which.strip().lower()
    if which.isdecimal() and len(which) <= _MOST_DIGITS:
        return instructions[int(which) - 1] if 1 <= int(which) <= len(instructions) else None
    matches = [one for one in instructions if which and one.id.startswith(which)]
    return matches[0] if len(matches) == 1 else None
