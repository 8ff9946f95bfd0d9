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
    note = f"{replaced} characters that no model accepts (NUL, lone surrogates) were shown as {chr(0xFFFD)}."
    return Cleaned(cleaned, (note,))
