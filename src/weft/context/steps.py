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


def with_steps(context: Context, steps: Sequence[Message], *, cuttable: bool = True) -> Context:
    """The context with what the turn did so far.

    Where that is too much, the oldest exchanges of the history give way, then the results of earlier steps
    are shortened. The last results are shown whole.

    Raises:
        BudgetExceeded: it is too much all the same.
    """
    receipt = context.receipt
    if receipt is None or not receipt.limit:
        return replace(context, steps=tuple(steps))
    count = counter(receipt.counter)
    room = _Room(count, receipt.total_tokens - receipt.limit)
    room.over += sum(map(room.price, steps))
    if room.over <= 0 or not cuttable:
        return _accounted(replace(context, steps=tuple(steps)), receipt, room)
    history = _cut(context.history, room)
    shown = _shortened(steps, room)
    if room.over > 0:
        needed = receipt.limit + room.over
        raise BudgetExceeded(needed=needed, budget=receipt.limit, largest="the results of tools")
    grown = replace(context, history=history, steps=shown)
    gone = context.history[: len(context.history) - len(history)]
    return _accounted(grown, _without(receipt, gone, count) if gone else receipt, room)


def _cut(history: tuple[Message, ...], room: _Room) -> tuple[Message, ...]:
    """The history without its oldest exchanges, as many as must go."""
    start = 0
    while room.over > 0 and start < len(history):
        end = next((at for at in range(start + 1, len(history)) if history[at].role == "user"), len(history))
        room.over -= sum(map(room.price, history[start:end]))
        start = end
    return history[start:]


def _shortened(steps: Sequence[Message], room: _Room) -> tuple[Message, ...]:
    """The steps, with results of all rounds but the last cut to their beginning, the oldest first."""
    shown = list(steps)
    last_round = max((at for at, step in enumerate(steps) if step.tool_calls), default=0)
    for at, step in enumerate(steps[:last_round]):
        if room.over > 0 and step.role == "tool" and len(step.content) > 2 * _SHORT:
            shown[at] = replace(step, content=f"{step.content[:_SHORT]}\n{_SHORTENED}")
            room.over -= room.price(step) - room.price(shown[at])
    return tuple(shown)


def _without(receipt: Receipt, gone: Sequence[Message], count: Counter) -> Receipt:
    """The receipt, with the oldest messages of its history as left out."""
    items = list[ReceiptItem]()
    for item in receipt.items:
        if item.layer == "history" and item.kept:
            first, last = item.span
            tokens, at = sum(map(count.message, gone)), first + len(gone)
            reason = "gave way to the results of tools"
            items.append(stretch(first, at - 1, tokens, reason))
            items += [stretch(at, last, item.tokens - tokens)] if at <= last else []
        elif item.layer == "framing":
            items.append(replace(item, tokens=item.tokens - len(gone) * count.per_message))
        else:
            items.append(item)
    return replace(receipt, items=tuple(items))


def _accounted(context: Context, receipt: Receipt, room: _Room) -> Context:
    """The context, with its steps as an item of the receipt."""
    calls = sum(len(step.tool_calls) for step in context.steps)
    item = ReceiptItem(
        layer="steps",
        source="tools",
        title=f"{calls} {'call' if calls == 1 else 'calls'} with results",
        tokens=sum(map(room.price, context.steps)),
        kept=True,
        reason="what this turn did so far",
        origin="tool",
        zone="turn",
    )
    return replace(context, receipt=replace(receipt, items=(*receipt.items, item)))
