"""Steps: the calls and results of a turn, which follow the message within the same limit."""

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

    def price(self, *messages: Message) -> int:
        return sum(self.counter.message(message) + self.counter.per_message for message in messages)


def with_steps(
    context: Context,
    steps: Sequence[Message],
    *,
    cuttable: bool = True,
    send: bool = False,
    sent: Sequence[Message] = (),
) -> Context:
    """Add what the turn did so far to its context.

    Where that is too much, the oldest exchanges of the history give way first. Then the results of earlier
    steps are shortened, and at last those of the newest, the longest first. The calls themselves stay: they
    were made. The summary of folded messages stays too.

    In an epoch the request must go on as it began. The first steps are shown as they were `sent`, and only
    the results of the newest round are shortened. If that is not enough, the epoch ends here.

    Raises:
        BudgetExceeded: it is too much all the same, and `send` is false.
    """
    receipt = context.receipt
    if receipt is None or not receipt.limit:
        return replace(context, steps=tuple(steps))
    if context.step is not None:
        grown_in_epoch = _in_epoch(context, receipt, (*sent, *steps[len(sent) :]), len(sent))
        if grown_in_epoch is not None:
            return grown_in_epoch
        context = replace(context, step=None)
    room = _Room(counter(receipt.counter), receipt.total_tokens - receipt.limit)
    full_price = room.price(*steps)
    room.over += full_price
    if room.over <= 0 or not cuttable:
        return _accounted(replace(context, steps=tuple(steps)), receipt, room)
    first = int(any(map(_is_summary, receipt.items)))
    history = _cut(context.history[first:], room)
    visible = _shortened(steps, room)
    if room.over > 0 and not send:
        needed = receipt.limit + room.over
        raise BudgetExceeded(
            needed=needed, budget=receipt.limit, largest="the results of tools", reserved=receipt.reserved
        )
    grown = replace(context, history=(*context.history[:first], *history), steps=visible)
    if dropped := context.history[first : len(context.history) - len(history)]:
        receipt = _without(receipt, dropped, room.counter)
    return _accounted(grown, receipt, room, cut=full_price - room.price(*visible))


def _in_epoch(context: Context, receipt: Receipt, steps: Sequence[Message], sent: int) -> Context | None:
    """Add steps behind those that were sent. Returns None if the newest cannot be shortened enough."""
    room = _Room(counter(receipt.counter), receipt.total_tokens - receipt.limit)
    full_price = room.price(*steps)
    room.over += full_price
    visible = (*steps[:sent], *_shortened(steps[sent:], room)) if room.over > 0 else tuple(steps)
    if room.over > 0:
        return None
    cut = full_price - room.price(*visible)
    return _accounted(replace(context, steps=visible), receipt, room, cut=cut)


def _is_summary(item: ReceiptItem) -> bool:
    return item.layer == "history" and item.kept and item.title.startswith("summary")


def _cut(history: tuple[Message, ...], room: _Room) -> tuple[Message, ...]:
    """Drop the oldest exchanges of a history, as many as must go."""
    start = 0
    while room.over > 0 and start < len(history):
        end = next((at for at in range(start + 1, len(history)) if history[at].role == "user"), len(history))
        room.over -= room.price(*history[start:end])
        start = end
    return history[start:]


def _shortened(steps: Sequence[Message], room: _Room) -> tuple[Message, ...]:
    """Cut results to their beginning: those of earlier rounds, oldest first, then those of the last round."""
    visible = list(steps)

    def shorten(at: int, length: int) -> None:
        before = room.price(visible[at])
        visible[at] = replace(visible[at], content=f"{steps[at].content[:length]}\n{_SHORTENED}")
        room.over -= before - room.price(visible[at])

    last_round = max((at for at, step in enumerate(steps) if step.tool_calls), default=0)
    lengths = {at: len(step.content) for at, step in enumerate(steps) if step.role == "tool"}
    for at, length in lengths.items():
        if room.over > 0 and at < last_round and length > 2 * _SHORT:
            shorten(at, _SHORT)
    last = {at: length for at, length in lengths.items() if at > last_round}
    while room.over > 0 and max(last.values(), default=0) > 2 * _SHORT:
        at = max(last, key=lambda place: last[place])
        last[at] //= 2
        shorten(at, last[at])
    return tuple(visible)


def _without(receipt: Receipt, dropped: Sequence[Message], count: Counter) -> Receipt:
    """Move the oldest messages of the history to what a receipt lists as left out."""
    items = list[ReceiptItem]()
    for item in receipt.items:
        if item.layer == "history" and item.kept and not _is_summary(item):
            first, last = item.span
            numbers = [number for number in range(first, last + 1) if not _is_left_out(number, receipt)]
            at = numbers[len(dropped)] if len(dropped) < len(numbers) else last + 1
            tokens = sum(map(count.message, dropped))
            items.append(stretch(first, at - 1, tokens, "gave way to the results of tools"))
            items += [stretch(at, last, item.tokens - tokens)] if at <= last else []
        elif item.layer == "framing":
            items.append(replace(item, tokens=item.tokens - len(dropped) * count.per_message))
        else:
            items.append(item)
    return replace(receipt, items=tuple(items))


def _is_left_out(number: int, receipt: Receipt) -> bool:
    """Check whether a message inside the visible stretch is left out: its exchange never came to its end."""
    return any(
        item.span[0] <= number <= item.span[-1]
        for item in receipt.dropped
        if item.layer == "history" and item.span
    )


def _accounted(context: Context, receipt: Receipt, room: _Room, *, cut: int = 0) -> Context:
    """Add the steps to the receipt as an item, and the tokens that were cut from them as another."""
    calls = sum(len(step.tool_calls) for step in context.steps)
    item = ReceiptItem(
        layer="steps",
        source="tools",
        title=f"{calls} {'call' if calls == 1 else 'calls'} with results",
        tokens=room.price(*context.steps),
        kept=True,
        reason="what this turn did so far",
        origin="tool",
        zone="turn",
    )
    items = [*receipt.items, item]
    if cut:
        reason = "results were shortened: the request had no room for more"
        items.append(replace(item, title="the rest of long results", tokens=cut, kept=False, reason=reason))
    return replace(context, receipt=replace(receipt, items=tuple(items)))
