"""A message from outside, made fit to be sent."""

from __future__ import annotations

import re
from dataclasses import dataclass

from weft.errors import EmptyMessage
from weft.types.escape import sendable, without_labels
from weft.types.injection import orders_in

_TOKEN = re.compile(r"([<\[])(\|\w+\|>|/?INST\])")


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


def sanitise(text: str) -> Cleaned:
    """A message from a channel: besides, what could pass for a role or a template's token is made harmless.

    Nothing is dropped. Text that gives the model orders about its instructions is told as such.

    Raises:
        EmptyMessage: nothing is left to answer.
    """
    cleaned = clean(text)
    harmless = _TOKEN.sub(lambda match: f"{match[1]}\\{match[2]}", without_labels(cleaned.text))
    notes = cleaned.notes
    if orders := orders_in(harmless):
        notes = (*notes, f"The message {orders}.")
    return Cleaned(harmless, notes)
