"""Attachments that are read again too often: when a new epoch without them is cheaper than this one.

What went with a message is sent again with every later request of its epoch, also long after it mattered.
A new epoch leaves it out, and pays for writing the rest anew. The sum of both is lowest if a new epoch begins
when reading old attachments has cost as much as a new beginning would.
"""

from __future__ import annotations

from bisect import bisect_right

from weft.context.epoch import EpochPlan
from weft.context.pace import begins_turn, price_from
from weft.context.plan import Materials
from weft.types.epoch import EpochView

_PATIENCE = 1.5
"""How many times over a new beginning must have been paid for. With 1 the cost is lowest, but only just, and
more requests are unlike the one before."""


def why_stale(going_on: EpochPlan, materials: Materials, view: EpochView) -> str:
    """Return why a request should begin a new epoch for the price alone; empty if it should not.

    A model without a known price for its cache has no such reason, and neither has a history that will be
    folded before a new epoch would have paid for itself.
    """
    model, counter, tail = materials.spec.model, materials.counter, materials.tail
    if model is None or model.cache_read is None or model.cache_read >= 1:
        return ""
    prices = {
        number: counter.attached(one.text) for number, one in view.attachments.items() if one.content is None
    }
    turns = [
        tail.messages_before + at for at, entry in enumerate(tail.entries, 1) if begins_turn(entry.message)
    ]
    old = sum(prices.values())
    reread = sum(price * (len(turns) - bisect_right(turns, number)) for number, price in prices.items())
    rest = max(going_on.plan.total - old, 0)
    if reread * model.cache_read <= _PATIENCE * rest * (model.cache_write - model.cache_read):
        return ""
    first = max(min(prices) - tail.messages_before - 1, 0)
    grown = price_from(tail, first, counter) + old
    if going_on.history_tokens + grown > going_on.marks.high:
        return ""
    return f"stale: {old:,} tokens that went with earlier messages have been sent often enough"
