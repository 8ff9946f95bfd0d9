"""What a turn does grows its request: calls and results come behind the message, within the same limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from weft.context.receipt import stretch
from weft.errors import BudgetExceeded
from weft.tokens import Counter, counter
from weft.types.context import Context
from weft.types.message import Message
from weft.types.receipt import Receipt, ReceiptItem

_SHORT = 400
_SHORTENED = "[Shortened: the request had no room for more of this result.]"


@dataclass(slots=True)
class _Room:
    """How far a request is over its limit, and how it counts."""

    counter: Counter
    over: int

    def price(self, message: Message) -> int:
        return self.counter.message(message) + self.counter.per_message


def with_steps(
    context: Context, steps: Sequence[Message], *, cuttable: bool = True, send: bool = False
) -> Context:
    """The context with what the turn did so far.

    Where that is too much, the oldest exchanges of the history give way, then the results of earlier steps
    are shortened, and at last those of the newest, the longest first: what was done cannot be undone because
    there is no room to tell of it. The summary of what was folded stays.

    Raises:
        BudgetExceeded: it is too much all the same, and must not be sent so.
    """
    receipt = context.receipt
    if receipt is None or not receipt.limit:
        return replace(context, steps=tuple(steps))
    count = counter(receipt.counter)
    room = _Room(count, receipt.total_tokens - receipt.limit)
    room.over += sum(map(room.price, steps))
    if room.over <= 0 or not cuttable:
        return _accounted(replace(context, steps=tuple(steps)), receipt, room)
    first = int(any(map(_is_summary, receipt.items)))
    history = _cut(context.history[first:], room)
    shown = _shortened(steps, room)
    if room.over > 0 and not send:
        needed = receipt.limit + room.over
        raise BudgetExceeded(needed=needed, budget=receipt.limit, largest="the results of tools")
    grown = replace(context, history=(*context.history[:first], *history), steps=shown)
    gone = context.history[first : len(context.history) - len(history)]
    left = _without(receipt, gone, count) if gone else receipt
    cut = sum(map(room.price, steps)) - sum(map(room.price, shown))
    return _accounted(grown, left, room, cut=cut)


def _is_summary(item: ReceiptItem) -> bool:
    return item.layer == "history" and item.kept and item.origin == "agent"


def _cut(history: tuple[Message, ...], room: _Room) -> tuple[Message, ...]:
    """The history without its oldest exchanges, as many as must go."""
    start = 0
    while room.over > 0 and start < len(history):
        end = next((at for at in range(start + 1, len(history)) if history[at].role == "user"), len(history))
        room.over -= sum(map(room.price, history[start:end]))
        start = end
    return history[start:]


def _shortened(steps: Sequence[Message], room: _Room) -> tuple[Message, ...]:
    """The steps, with results cut to their beginning: of earlier rounds the oldest first, then the last."""
    shown = list(steps)
    last_round = max((at for at, step in enumerate(steps) if step.tool_calls), default=0)
    lengths = {at: len(step.content) for at, step in enumerate(steps) if step.role == "tool"}
    for at, length in lengths.items():
        if room.over > 0 and at < last_round and length > 2 * _SHORT:
            _shorten(shown, at, steps[at].content[:_SHORT], room)
    last = {at: length for at, length in lengths.items() if at > last_round}
    while room.over > 0 and max(last.values(), default=0) > 2 * _SHORT:
        at = max(last, key=lambda place: last[place])
        last[at] //= 2
        _shorten(shown, at, steps[at].content[: last[at]], room)
    return tuple(shown)


def _shorten(shown: list[Message], at: int, start: str, room: _Room) -> None:
    before = room.price(shown[at])
    shown[at] = replace(shown[at], content=f"{start}\n{_SHORTENED}")
    room.over -= before - room.price(shown[at])


def _without(receipt: Receipt, gone: Sequence[Message], count: Counter) -> Receipt:
    """The receipt, with the oldest messages of its history as left out."""
    items = list[ReceiptItem]()
    for item in receipt.items:
        if item.layer == "history" and item.kept and not _is_summary(item):
            first, last = item.span
            shown = [number for number in range(first, last + 1) if not _left_out(number, receipt)]
            at = shown[len(gone)] if len(gone) < len(shown) else last + 1
            tokens = sum(map(count.message, gone))
            items.append(stretch(first, at - 1, tokens, "gave way to the results of tools"))
            items += [stretch(at, last, item.tokens - tokens)] if at <= last else []
        elif item.layer == "framing":
            items.append(replace(item, tokens=item.tokens - len(gone) * count.per_message))
        else:
            items.append(item)
    return replace(receipt, items=tuple(items))


def _left_out(number: int, receipt: Receipt) -> bool:
    """Whether a message inside the shown stretch is not shown: its exchange never came to its end."""
    return any(
        item.span[0] <= number <= item.span[-1]
        for item in receipt.dropped
        if item.layer == "history" and item.span
    )


def _accounted(context: Context, receipt: Receipt, room: _Room, *, cut: int = 0) -> Context:
    """The context, with its steps as an item of the receipt, and what was cut from them as another."""
    calls = sum(len(step.tool_calls) for step in context.steps)
    shown = ReceiptItem(
        layer="steps",
        source="tools",
        title=f"{calls} {'call' if calls == 1 else 'calls'} with results",
        tokens=sum(map(room.price, context.steps)),
        kept=True,
        reason="what this turn did so far",
        origin="tool",
        zone="turn",
    )
    items = [*receipt.items, shown]
    if cut:
        reason = "results were shortened: the request had no room for more"
        items.append(replace(shown, title="the rest of long results", tokens=cut, kept=False, reason=reason))
    return replace(context, receipt=replace(receipt, items=tuple(items)))
