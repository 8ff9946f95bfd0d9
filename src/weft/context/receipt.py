"""The account of one build: every part that is shown, and every part that is not, with the reason."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from weft.context.plan import Plan
from weft.types.receipt import Receipt, ReceiptItem, Usage
from weft.types.recipe import Layer
from weft.types.reply import Reply
from weft.types.section import Place, Section, Stability

_GAVE_WAY = "gave way: the budget is {limit} tokens"
_ENOUGH = 200
"""Tokens of a request below which its framing says more about a count than its text."""
_TOO_FEW = 0.6
"""No vocabulary needs less than this share of our tokens for the same text: then text was lost."""
_TOO_MANY = 12.0
"""Nor does one need more, even where four characters of Chinese count as one: then text was added."""


def account(plan: Plan, *, warnings: tuple[str, ...] = ()) -> Receipt:
    """The receipt of a plan. Its items add up to exactly what the plan costs."""
    items = [*_tools(plan)]
    for at, layer in enumerate(plan.materials.recipe.layers):
        if layer.source == "history":
            items += _history(plan)
        elif layer.source == "message":
            items.append(_message(plan))
        else:
            items += _layer(plan, at, layer)
    if plan.framing_tokens:
        items.append(_framing(plan))
    notes = [warning for offer in plan.materials.offers for warning in offer.warnings]
    return Receipt(
        items=tuple(items),
        limit=plan.materials.limits.ceiling,
        recipe=plan.materials.recipe.name,
        counter=plan.materials.recipe.tokens,
        warnings=(*warnings, *notes),
    )


def settle(receipt: Receipt, replies: Sequence[Reply], *, first_tokens: int, ratio: float) -> Receipt:
    """The receipt with what the provider said of the requests: their cost, and what was mended in them.

    `first_tokens` is our count of the first request. What the provider counted for it teaches how many of
    its tokens one of ours is: at once if that is more than was believed, slowly if it is less.
    """
    usages = [reply.usage for reply in replies if reply.usage is not None]
    notes = dict.fromkeys(note for reply in replies for note in reply.notes)
    settled = replace(receipt, warnings=(*receipt.warnings, *notes), usage=_sum(usages))
    told = replies[0].usage.input_tokens if replies and replies[0].usage is not None else 0
    if not told or first_tokens < _ENOUGH:
        return settled
    if receipt.provider == "ollama" and told < first_tokens * _TOO_FEW:
        error = (
            f"Ollama read {told} tokens of a request of about {first_tokens}: it cut the rest away "
            "without a word. Raise the memory it may use, or lower `context.max_tokens`."
        )
        return replace(settled, errors=(*settled.errors, error))
    seen = told / first_tokens
    if seen > _TOO_MANY or receipt.provider == "claude_code":
        return settled  # a program that adds a prompt of its own says nothing about ours
    return replace(settled, ratio=round(max(seen, 0.9 * ratio + 0.1 * seen), 3))


def _sum(usages: Sequence[Usage]) -> Usage | None:
    if not usages:
        return None
    return Usage(
        input_tokens=sum(usage.input_tokens for usage in usages),
        output_tokens=sum(usage.output_tokens for usage in usages),
        cached_tokens=sum(usage.cached_tokens for usage in usages),
    )


def _layer(plan: Plan, at: int, layer: Layer) -> Iterator[ReceiptItem]:
    """What a layer shows, then what it does not: pieces that lost their place, and what was withheld."""
    offer, place = plan.materials.offers[at], plan.materials.places[at]
    for section in plan.written[at]:
        yield _of(section, place, tokens=section.tokens, kept=True, reason=section.why)
    gave_way = _GAVE_WAY.format(limit=plan.materials.limits.ceiling)
    for number, piece in enumerate(offer.pieces):
        if number not in plan.kept[at]:
            reason = plan.excluded[at].get(number, gave_way)
            tokens = plan.materials.counter.text(piece.text)
            yield _of(piece, place, tokens=tokens, kept=False, reason=reason)
    for withheld in offer.withheld:
        yield ReceiptItem(
            layer=offer.layer,
            source=layer.source,
            title=withheld.title,
            tokens=withheld.tokens,
            kept=False,
            reason=withheld.reason,
            zone=_zone(Stability.SESSION, place),
        )


def _of(section: Section, place: Place, *, tokens: int, kept: bool, reason: str) -> ReceiptItem:
    return ReceiptItem(
        layer=section.layer,
        source=section.source,
        title=section.title,
        tokens=tokens,
        kept=kept,
        reason=reason,
        origin=section.origin,
        zone=_zone(section.stability, place),
    )


def _history(plan: Plan) -> Iterator[ReceiptItem]:
    """The summary of what was folded, and stretches: that, what is beyond the recipe's own limits, what gave
    way to the budget, what is shown, and between all these exchanges that never came to their end."""
    window, tail = plan.window, plan.window.tail
    before, count, folded = tail.messages_before, len(tail.entries), tail.messages_folded
    limited = before + window.cuts[window.first] if window.limited_by else folded
    start, end = before + window.cuts[plan.cut], before + count
    prices = [0 if at in window.excluded else entry.tokens for at, entry in enumerate(tail.entries)]

    def tokens(first: int, last: int) -> int:
        unseen = tail.tokens_before if folded < first <= before else 0
        return unseen + sum(prices[max(first - 1 - before, 0) : last - before])

    if plan.materials.fold:
        yield replace(
            stretch(1, folded, plan.summary_tokens),
            title=f"summary of messages 1-{folded}",
            reason="stands for the messages that were folded into it",
            origin="agent",
        )
        yield stretch(1, folded, tail.tokens_folded, "folded into the summary; the log keeps them")
    elif folded:
        yield stretch(1, folded, tail.tokens_folded, "folded, and there is no room for their summary")
    gave_way = _GAVE_WAY.format(limit=plan.materials.limits.ceiling)
    limits = (folded + 1, limited, window.limited_by)
    for first, last, reason in (limits, (limited + 1, start, gave_way), (start + 1, end, "")):
        if first <= last:
            yield stretch(first, last, tokens(first, last), reason)
    for first, last in _runs(window.excluded):
        cost = sum(entry.tokens for entry in tail.entries[first : last + 1])
        yield stretch(before + first + 1, before + last + 1, cost, "the exchange never came to its end")


def _runs(positions: Collection[int]) -> Iterator[tuple[int, int]]:
    """Neighbouring positions as runs, each from its first to its last."""
    for _, run in groupby(enumerate(sorted(positions)), lambda pair: pair[1] - pair[0]):
        found = [position for _, position in run]
        yield found[0], found[-1]


def stretch(first: int, last: int, tokens: int, reason: str = "") -> ReceiptItem:
    """One item for a run of messages; without a reason to drop it, it is shown."""
    return ReceiptItem(
        layer="history",
        source="history",
        title=f"message {first}" if first == last else f"messages {first}-{last}",
        tokens=tokens,
        kept=not reason,
        reason=reason or "the newest messages",
        origin="user",
        zone="session",
        span=(first, last),
    )


def _message(plan: Plan) -> ReceiptItem:
    return ReceiptItem(
        layer="message",
        source="message",
        title="the message",
        tokens=plan.message_tokens,
        kept=True,
        reason="always shown",
        origin="user",
        zone="turn",
    )


def _framing(plan: Plan) -> ReceiptItem:
    return ReceiptItem(
        layer="framing",
        source="framing",
        title="marks between the parts",
        tokens=plan.framing_tokens,
        kept=True,
        reason="what joining the parts into messages costs",
        zone="session",
    )


def _tools(plan: Plan) -> Iterator[ReceiptItem]:
    for tool, tokens in zip(plan.materials.tools, plan.tool_tokens, strict=True):
        yield ReceiptItem(
            layer="tools",
            source="tools",
            title=tool.name,
            tokens=tokens,
            kept=True,
            reason="offered to the model",
            zone="static",
        )


def _zone(stability: Stability, place: Place) -> str:
    return "turn" if place == Place.MESSAGE else str(stability)
