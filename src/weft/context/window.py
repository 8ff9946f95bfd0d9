"""Windows: the newest part of a history.

A cut is a position at which a window may begin. It is never between a tool call and its results. Where the
recipe counts in exchanges, it is always at a message of the user.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from operator import attrgetter

from weft.types.message import Message
from weft.types.recipe import HistoryRule
from weft.types.session import Entry, Tail


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The loaded end of a history, and its cuts.

    `costs[i]` is the price of the messages from `cuts[i]` on. The last cut is past the end: a window there
    shows nothing. `first` is the index of the earliest cut within the recipe's own limits, and `limited_by`
    names the limit. A history that must not be cut has one cut only. No window shows the positions in
    `excluded`.
    """

    tail: Tail
    cuts: tuple[int, ...]
    costs: tuple[int, ...]
    first: int = 0
    limited_by: str = ""
    excluded: frozenset[int] = frozenset()

    def cut_within(self, budget: int, *, after: int) -> int:
        """Return the index of the earliest cut, not before `after`, whose window is within the budget.

        For a budget below zero it is that of the last cut, which shows nothing.
        """
        affordable = bisect_left(self.costs, -budget, key=lambda cost: -cost)
        return max(after, min(affordable, len(self.cuts) - 1))

    def messages(self, cut: int) -> tuple[Message, ...]:
        start, entries = self.cuts[cut], self.tail.entries
        if not self.excluded:
            return tuple(map(attrgetter("message"), entries[start:]))
        return tuple(entries[at].message for at in range(start, len(entries)) if at not in self.excluded)

    def length(self, cut: int) -> int:
        """Count the messages of the window that begins at a cut."""
        start = self.cuts[cut]
        return len(self.tail.entries) - start - sum(at >= start for at in self.excluded)


def open_window(
    tail: Tail, rule: HistoryRule, *, history_tokens: int | None = None, per_message: int = 0
) -> Window:
    """Open a window: find all cuts of a history, and the first one within the recipe's own limits."""
    cuts = _cuts(tail, rule)
    prices = [entry.tokens + per_message for entry in tail.entries]
    from_end = [0, *accumulate(reversed(prices))]
    window = Window(tail=tail, cuts=cuts, costs=tuple(from_end[len(prices) - cut] for cut in cuts))
    limit = min((n for n in (rule.max_tokens, history_tokens) if n is not None), default=None)
    if rule.strategy in ("truncate", "summarize"):
        over = _over(tail, rule, limit, total_tokens=from_end[-1] + tail.tokens_before)
        return _truncated(_without_incomplete(window, prices), rule, limit, over) if over else window
    limited = _limited(window, rule.max_messages, limit)
    if rule.strategy != "none":
        return limited
    only = slice(limited.first, limited.first + 1)  # with one cut, no budget can shorten the window
    return replace(limited, cuts=limited.cuts[only], costs=limited.costs[only], first=0)


def _limited(window: Window, max_messages: int | None, max_tokens: int | None) -> Window:
    """Set the first cut of a window, so that it has at most this many messages and tokens."""
    first, why = 0, ""
    if max_messages is not None:
        beyond = len(window.tail.entries) - len(window.excluded) - max_messages
        oldest = beyond
        if window.excluded:  # what is excluded takes no place
            left = [at for at in range(len(window.tail.entries)) if at not in window.excluded]
            oldest = left[min(max(beyond, 0), len(left) - 1)] if left else beyond
        first = bisect_left(window.cuts, oldest)
        if first or (window.tail.messages_before and beyond >= 0):
            why = f"older than the newest {max_messages} messages"
    if max_tokens is not None and window.costs[first] > max_tokens:
        first = window.cut_within(max_tokens, after=first)
        why = f"over the {max_tokens} tokens for history"
    return replace(window, first=first, limited_by=why)


def _over(tail: Tail, rule: HistoryRule, max_tokens: int | None, *, total_tokens: int) -> str:
    """Return the name of the limit that a history exceeds; empty if it exceeds none."""
    total = len(tail.entries) + tail.messages_before - tail.messages_folded
    if rule.max_messages is not None and total > rule.max_messages:
        return f"{rule.max_messages} messages"
    return f"{max_tokens} tokens" if max_tokens is not None and total_tokens > max_tokens else ""


def _truncated(window: Window, rule: HistoryRule, max_tokens: int | None, over: str) -> Window:
    """Limit a window to the newest exchanges, at least one.

    The window is cut to two thirds of the token limit. It has room to grow then, so that the next turn need
    not cut it again.
    """
    keep = rule.keep_recent if rule.max_messages is None else min(rule.keep_recent, rule.max_messages)
    cut = _limited(window, keep, None if max_tokens is None else max_tokens * 2 // 3)
    why = f"the history is over {over} and was cut: {cut.limited_by or 'whole exchanges are kept'}"
    newest_exchange = max(0, len(window.cuts) - 2)
    return replace(window, first=min(cut.first, newest_exchange), limited_by=why)


def _without_incomplete(window: Window, prices: list[int]) -> Window:
    """Exclude incomplete exchanges, except the last one, which may still be running."""
    excluded: set[int] = set()
    for start, end in pairwise(window.cuts[:-1]):
        batch = [entry.message for entry in window.tail.entries[start:end]]
        if batch and not is_complete(batch):
            excluded.update(range(start, end))
    if not excluded:
        return window
    left = [0 if at in excluded else price for at, price in enumerate(prices)]
    from_end = [0, *accumulate(reversed(left))]
    costs = tuple(from_end[len(left) - cut] for cut in window.cuts)
    return replace(window, costs=costs, excluded=frozenset(excluded))


def is_complete(batch: Sequence[Message]) -> bool:
    """Check whether an exchange is complete: every tool call has a result, and no user message is last."""
    answered = {message.tool_call_id for message in batch if message.role == "tool"}
    pending = any(call.id not in answered for message in batch for call in message.tool_calls)
    return not pending and batch[-1].role in ("assistant", "tool")


def _cuts(tail: Tail, rule: HistoryRule) -> tuple[int, ...]:
    """Return the positions where a window may begin, ascending; the last one is past the end."""
    entries = tail.entries
    roles = [entry.message.role for entry in entries]
    inside = _inside_calls(entries) if "tool" in roles else frozenset()
    allowed = (
        range(len(roles)) if rule.unit == "message" else [at for at, r in enumerate(roles) if r == "user"]
    )
    cuts = [at for at in allowed if at not in inside]
    if roles and not tail.messages_before and cuts[:1] != [0]:
        cuts.insert(0, 0)
    return (*cuts, len(roles))


def _inside_calls(entries: Sequence[Entry]) -> AbstractSet[int]:
    """Return the positions after a call, up to its last result: none of them is a cut.

    A result without its call belongs to a call before the loaded messages. It is no cut either.
    """
    calls: dict[str, int] = {}
    last_result: dict[int, int] = {}
    inside: set[int] = set()
    for at, entry in enumerate(entries):
        message = entry.message
        for call in message.tool_calls:
            calls[call.id] = at
        if message.role == "tool":
            call_at = calls.get(message.tool_call_id or "")
            if call_at is None:
                inside.add(at)
            else:
                last_result[call_at] = at
    closed_until = 0
    for call_at, last in sorted(last_result.items()):
        inside.update(range(max(call_at, closed_until) + 1, last + 1))
        closed_until = max(closed_until, last)
    return inside
