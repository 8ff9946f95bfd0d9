"""What strangers wrote of all that a model sees: while it is in view, tools that act need consent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from weft.types.context import Context
from weft.types.message import Message
from weft.types.section import OUTSIDE, Place

_RUN = 8
"""So many words in a row that stand in a text of strangers were taken from it."""
_MOST_WORDS = 4_000


AFTER = "after "
"""The start of a place that an answer did not read in its own exchange: it was in view from before."""


def places_of(message: Message) -> tuple[str, ...]:
    """Name where the text of strangers in a message comes from; nothing if there is none.

    What an answer may only have from texts that were in view before does not count here: it ends with them.
    """
    if message.outside and (own := tuple(one for one in message.outside if not one.startswith(AFTER))):
        return own
    if message.origin not in OUTSIDE:
        return ()
    tool = message.tool_name
    return (f"the result of {tool}" if tool else f"an earlier message ({message.origin})",)


def is_from_outside(message: Message) -> bool:
    """Check whether strangers wrote a message, or a part of it."""
    return bool(places_of(message))


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


def attached(context: Context) -> tuple[str, ...]:
    """Name the places of strangers' text that goes with the message of this turn."""
    shown = [section for section in context.sections if section.place == Place.MESSAGE]
    return tuple(f"{one.source} ({one.origin})" for one in shown if one.origin in OUTSIDE)


def answer_places(
    text: str, *, read: Iterable[str], in_view: Iterable[str], history: Sequence[Message]
) -> tuple[str, ...]:
    """Name the places of strangers' text that may be in an answer.

    `read` was read in its exchange, or many words in a row were taken from it. All else that was `in_view` is
    marked as such: it counts when the answer is recalled or learned from, and not while it is in view itself.
    """
    own = tuple(dict.fromkeys((*read, *copied_from(text, history))))
    before = [f"{AFTER}{place}" for place in in_view if place not in own]
    return (*own, *before)


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
