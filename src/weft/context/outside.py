"""What strangers wrote of all that a model sees: while it is in view, tools that act need consent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from weft.types.context import Context
from weft.types.message import Message
from weft.types.section import OUTSIDE, Place

_RUN = 8
"""So many words in a row that stand in a text of strangers were taken from it."""
_MOST_WORDS = 4_000


def places_of(message: Message) -> tuple[str, ...]:
    """Name where the text of strangers in a message comes from; nothing if there is none."""
    if message.outside:
        return message.outside
    if message.origin not in OUTSIDE:
        return ()
    tool = message.tool_name
    return (f"the result of {tool}" if tool else f"an earlier message ({message.origin})",)


def is_from_outside(message: Message) -> bool:
    """Check whether strangers wrote a message, or a part of it."""
    return bool(message.outside) or message.origin in OUTSIDE


def in_view(context: Context) -> tuple[str, ...]:
    """Name the places of all text of strangers that a context shows: sections, history, attachments."""
    return tuple(dict.fromkeys(_in_view(context)))


def _in_view(context: Context) -> Iterator[str]:
    for section in context.sections:
        if section.origin in OUTSIDE:
            yield f"{section.source} ({section.origin})"
    if context.step is not None:
        yield from context.step.outside
    for message in context.history:
        yield from places_of(message)


def seen_before(context: Context) -> tuple[str, ...]:
    """Name the places of strangers' text that was in view before this turn."""
    new = replace(context, sections=tuple(s for s in context.sections if s.place == Place.SYSTEM))
    if context.step is not None:
        new = replace(new, step=replace(context.step, outside=context.step.outside_before))
    return in_view(new)


def copied_from(text: str, messages: Iterable[Message]) -> tuple[str, ...]:
    """Name the places of strangers' texts from which a text has many words in a row."""
    words = text.casefold().split()[:_MOST_WORDS]
    runs = [" ".join(words[at : at + _RUN]) for at in range(len(words) - _RUN + 1)]
    if not runs:
        return ()
    strangers = [message for message in messages if is_from_outside(message)]
    return tuple(
        dict.fromkeys(
            place
            for message in strangers
            if _has_any(" ".join(message.content.casefold().split()[:_MOST_WORDS]), runs)
            for place in places_of(message)
        )
    )


def _has_any(text: str, runs: Sequence[str]) -> bool:
    return any(run in text for run in runs)
