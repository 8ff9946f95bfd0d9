"""A message from outside, made safe to send to a model."""

from __future__ import annotations

from dataclasses import dataclass

from weft.errors import EmptyMessage
from weft.types.escape import sendable, without_labels
from weft.types.injection import orders_in
from weft.types.template_tokens import PLAIN_TOKEN, without_template_tokens


@dataclass(frozen=True, slots=True)
class SafeText:
    """A sanitized text, with one sentence for everything that was changed in it or stands out."""

    text: str
    notes: tuple[str, ...] = ()


def clean(text: str) -> SafeText:
    """Replace the characters that no provider accepts.

    Raises:
        EmptyMessage: nothing is left to answer.
    """
    cleaned, count = sendable(text)
    if not cleaned.strip():
        raise EmptyMessage
    if not count:
        return SafeText(cleaned)
    characters = "1 character" if count == 1 else f"{count} characters"
    note = f"No model accepts NUL and lone surrogates: {characters} became {chr(0xFFFD)}."
    return SafeText(cleaned, (note,))


def escaped(text: str) -> str:
    """Replace what no provider accepts, and escape what could pass for a role label or a template's token."""
    return without_template_tokens(without_labels(sendable(text)[0]), PLAIN_TOKEN)


def sanitize(text: str) -> SafeText:
    """Clean a message, and escape what could pass for a role label or a chat template's token.

    Nothing is dropped. A note says so where the text gives the model orders about its instructions.

    Raises:
        EmptyMessage: nothing is left to answer.
    """
    notes, safe = clean(text).notes, escaped(text)
    if orders := orders_in(safe):
        notes = (*notes, f"The message {orders}.")
    return SafeText(safe, notes)
