"""A message from outside, made fit to be sent."""

from __future__ import annotations

from dataclasses import dataclass

from weft.errors import EmptyMessage
from weft.types.neutral import sendable


@dataclass(frozen=True, slots=True)
class Cleaned:
    """The text, and one sentence for everything that was changed in it."""

    text: str
    notes: tuple[str, ...] = ()


def clean(text: str) -> Cleaned:
    """Replace what no provider accepts; nothing else is touched.

    Raises:
        EmptyMessage: nothing is left to answer.
    """
    cleaned, replaced = sendable(text)
    if not cleaned.strip():
        raise EmptyMessage
    if not replaced:
        return Cleaned(cleaned)
    them = "1 character" if replaced == 1 else f"{replaced} characters"
    note = f"No model accepts NUL and lone surrogates: {them} became {chr(0xFFFD)}."
    return Cleaned(cleaned, (note,))
