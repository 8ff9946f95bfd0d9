"""The pace of a history: how much a turn adds to it, and how deep it is folded so that ten turns fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from weft.tokens import Counter
from weft.types.epoch import EpochView, Marks
from weft.types.message import Message
from weft.types.recipe import HistoryRule
from weft.types.session import Tail

TURNS = 10
"""A history is not cut again within this many turns, as far as they fit its room."""
_RECENT = 12
"""The pace is that of so many turns."""
_PLANNED = 12
"""A fold leaves room for so many turns: the next ones may be longer, and a summary may come late."""
_NEXT = 1.25
"""A history that was cut a short time ago may grow while so many more turns fit."""
_EXCEPTION = 3
"""A turn that fills more than a third of the room says nothing about the next ones, unless all of them do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How many tokens a turn added to the view lately, with its attachments, answer and results of tools.

    `newest` is the price of the newest exchange in a new epoch, where nothing is attached to it. `since`
    counts the turns since the history was last cut; it is None if it never was.
    """

    tokens: int = 0
    newest: int = 0
    since: int | None = None

    @property
    def is_recent(self) -> bool:
        """Whether the history should not be cut again yet."""
        return self.since is not None and self.since < TURNS


def pace_of(tail: Tail, view: EpochView, counter: Counter, *, room: int) -> Pace:
    """Measure the newest turns of a logged history that has so much room."""
    starts = [at for at, entry in enumerate(tail.entries) if begins_turn(entry.message)]
    sent = _prices(tail, view, counter, starts[-_RECENT] if len(starts) >= _RECENT else 0)
    offset = len(tail.entries) - len(sent)
    spans = pairwise((*starts[-_RECENT:], len(tail.entries)))
    costs = [sum(sent[start - offset : end - offset]) for start, end in spans]
    usual = [cost for cost in costs if cost * _EXCEPTION <= room] or costs
    newest = price_from(tail, starts[-1], counter) if starts else 0
    since = None
    if view.cut_at:
        since = sum(tail.messages_before + at + 1 >= view.cut_at for at in starts)
    return Pace(tokens=_mean(usual) + _mean(_attached(view, counter)), newest=newest, since=since)


def attached_in(tail: Tail, view: EpochView, counter: Counter) -> tuple[int, int]:
    """Return how many tokens were attached in an epoch, and in how many turns."""
    first = min(view.attachments, default=0)
    texts = [one.text for one in view.attachments.values() if one.content is None]
    entries = tail.entries[max(first - tail.messages_before - 1, 0) :]
    turns = sum(begins_turn(entry.message) for entry in entries) if first else 0
    return sum(map(counter.attached, texts)), turns


def price_from(tail: Tail, at: int, counter: Counter) -> int:
    """Return the tokens of the entries from a position on."""
    return sum(entry.tokens + counter.per_message for entry in tail.entries[at:])


def begins_turn(message: Message) -> bool:
    """Check whether a message begins a turn. A note to the model between rounds of tools does not."""
    return message.role == "user" and message.origin != "operator"


def _prices(tail: Tail, view: EpochView, counter: Counter, start: int) -> list[int]:
    """Price the entries from a position on, results of tools as they were shortened to be sent."""
    prices = list[int]()
    for at in range(start, len(tail.entries)):
        entry, attachment = tail.entries[at], view.attachments.get(tail.messages_before + at + 1)
        tokens = entry.tokens
        if attachment is not None and attachment.content is not None:
            tokens = counter.message(replace(entry.message, content=attachment.content))
        prices.append(tokens + counter.per_message)
    return prices


def _attached(view: EpochView, counter: Counter) -> Iterator[int]:
    """Yield what was attached to each of the newest messages."""
    numbers = [number for number, one in sorted(view.attachments.items()) if one.content is None]
    for number in numbers[-_RECENT:]:
        yield counter.attached(view.attachments[number].text)


def _mean(costs: Sequence[int] | Iterator[int]) -> int:
    costs = list(costs)
    return round(sum(costs) / len(costs)) if costs else 0


def marks_of(rule: HistoryRule, room: int, pace: Pace, *, turn: int = 0) -> Marks:
    """Return the marks for the tokens that are left for the history beside a turn of so many, at its pace.

    A history that grows fast is folded deeper than to the low mark, so that ten such turns fit below the high
    one. Where it was cut a short time ago, it may pass the high mark while the next turn fits.
    """
    most = room + turn if rule.max_tokens is None else min(room + turn, rule.max_tokens)
    room = max(room if rule.max_tokens is None else min(room, rule.max_tokens), 0)
    high, low = int(room * rule.fold_at), int(room * rule.fold_to)
    target = min(low, max(high - _PLANNED * pace.tokens, 0))
    due = max(high, most - int(_NEXT * pace.tokens)) if pace.is_recent else high
    return Marks(high=high, low=low, due=due, target=target)


def depth_of(marks: Marks, pace: Pace, *, summary: int) -> int:
    """Return to how many tokens a history is cut, with a summary of so many.

    The newest exchange stays word for word if that is not above the low mark.
    """
    return max(marks.target, min(summary + pace.newest, marks.low))


def summary_room(marks: Marks) -> int:
    """Return how long a summary may be: a third of what is left, and a sixth of the low mark in any case."""
    return max(marks.target // 3, marks.low // 6)
