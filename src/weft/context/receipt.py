"""The receipt of one build: every part that is shown, and every part that is not, with the reason."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from weft.context.plan import ContextPlan
from weft.tokens import tool_hash
from weft.types.epoch import digest_of
from weft.types.limits import ModelInfo, Prices
from weft.types.message import ToolDefinition
from weft.types.receipt import HEADING, Expectation, Receipt, ReceiptItem, Usage
from weft.types.recipe import Layer
from weft.types.reply import Reply
from weft.types.section import Origin, Part, Piece, Place, Section, Stability

_GAVE_WAY = "gave way: the budget is {limit} tokens"
_LEFT_OUT = "left out since the epoch began: there was no more room; `look_back` reads them"
_ENOUGH = 200
"""In a request with fewer tokens, the framing weighs more in a provider's count than the text."""
_TOO_FEW = 0.6
"""No vocabulary needs less than this share of our tokens for a text: a lower count means lost text."""
_TOO_MANY = 12.0
"""No vocabulary needs more, even if we count four Chinese characters as one token: text was added."""
_RATIOS = {"exact": (0.8, 2.0)}
_ESTIMATED_RATIOS = (0.8, 4.0)
"""The bounds of a learned ratio, so that a server that counts wrongly cannot move a budget by a factor."""
_DEARER = 2.5
"""How much higher the bound is for other scripts than plain English: some vocabularies know few of them."""
_FULL = 0.99
"""A server whose count is this close to its window has cut the request to it, whatever we counted."""


def account(plan: ContextPlan, *, warnings: tuple[str, ...] = ()) -> Receipt:
    """Write the receipt of a plan. Its items add up to exactly what the plan costs."""
    materials, spec = plan.materials, plan.materials.spec
    items = [_tool_item(tool, tokens) for tool, tokens in zip(spec.tools, materials.tool_tokens, strict=True)]
    for at, layer in enumerate(spec.recipe.layers):
        if layer.source == "history":
            items += _history(plan)
        elif layer.source == "message":
            message = _engine_item(
                "message", "the message", materials.message_tokens, "always shown", zone="turn"
            )
            items.append(replace(message, origin="user", hash=digest_of(materials.sent_message)))
            if number := len(spec.parts):
                reason = "attached to the message; an estimate, since providers count pictures differently"
                title = "a picture" if number == 1 else f"{number} pictures"
                pictures = _engine_item("message", title, materials.picture_tokens, reason, zone="turn")
                items.append(replace(pictures, origin="user"))
        else:
            items += _layer(plan, at, layer)
    if plan.framing_tokens:
        reason = "what joining the parts into messages costs"
        items.append(_engine_item("framing", "marks between the parts", plan.framing_tokens, reason))
    notes = [warning for offer in materials.offers for warning in offer.warnings]
    model = spec.model or ModelInfo()
    return Receipt(
        items=tuple(items),
        limit=spec.limits.ceiling,
        reserved=spec.limits.reserved_response_tokens,
        recipe=spec.recipe.name,
        counter=spec.recipe.tokens,
        warnings=(*warnings, *notes),
        provider=model.provider,
        model=model.id,
        address=model.address,
        window=model.max_tokens or 0,
    )


def _engine_item(layer: str, title: str, tokens: int, reason: str, *, zone: str = "session") -> ReceiptItem:
    """Account for a part that no source offers."""
    return ReceiptItem(
        layer=layer, source=layer, title=title, tokens=tokens, kept=True, reason=reason, zone=zone
    )


def _tool_item(tool: ToolDefinition, tokens: int) -> ReceiptItem:
    return ReceiptItem(
        layer="tools",
        source="tools",
        title=tool.name,
        tokens=tokens,
        kept=True,
        reason="offered to the model",
        zone="static",
        id=tool.name,
        hash=tool_hash(tool),
    )


def settle(receipt: Receipt, replies: Sequence[Reply], *, first_tokens: int, ratio: float) -> Receipt:
    """Add the provider's figures to a receipt: what the requests cost, and what was repaired in them.

    `first_tokens` is our count of the first request, and `ratio` the number of the model's tokens that one
    of ours was believed to be, unless the receipt has it. The provider's count corrects it within bounds: by
    half of the difference if it is higher, by a tenth if it is lower. A mixture of scripts teaches nothing.
    """
    usages = [reply.usage for reply in replies if reply.usage is not None]
    notes = dict.fromkeys(note for reply in replies for note in reply.notes)
    settled = replace(receipt, warnings=(*receipt.warnings, *notes), usage=_sum(usages))
    counted = replies[0].usage.input_tokens if replies and replies[0].usage is not None else 0
    if error := _cut_error(receipt, usages, counted, first_tokens):
        return replace(settled, errors=(*settled.errors, error))
    if not counted or first_tokens < _ENOUGH:
        return settled
    expected = receipt.expected or Expectation(ratio=ratio, script="plain", script_ratio=ratio)
    measured = counted / first_tokens
    if measured > _TOO_MANY or receipt.provider == "claude_code" or not expected.script:
        return settled  # a program that adds a prompt of its own says nothing about ours
    step = 0.5 if measured > expected.ratio else 0.1
    # What was a little of another script moves the number for the main one by its factor only.
    factor = 1 + step * (measured - expected.ratio) / expected.ratio
    lowest, highest = _RATIOS.get(receipt.counter, _ESTIMATED_RATIOS)
    if expected.script != "plain":
        highest *= _DEARER
    return replace(settled, ratio=round(min(max(expected.script_ratio * factor, lowest), highest), 3))


def _cut_error(receipt: Receipt, usages: Sequence[Usage], counted: int, first_tokens: int) -> str:
    """Say that a server cut the request, if its counts show that; else nothing."""
    name = "Ollama" if receipt.provider == "ollama" else receipt.provider
    is_told = bool(receipt.expected and receipt.expected.sent_window) or receipt.provider == "ollama"
    if not is_told:
        return ""
    if first_tokens >= _ENOUGH and 0 < counted < first_tokens * _TOO_FEW:
        return (
            f"{name} read {counted} tokens of a request of about {first_tokens}: it cut the rest away "
            "without a word. Raise the memory it may use, or lower `context.max_tokens`."
        )
    most = max((usage.input_tokens for usage in usages), default=0)
    if receipt.window and most >= receipt.window * _FULL:
        return (
            f"{name} read {most} tokens, and its window has {receipt.window}: it cut away what did not fit, "
            "without a word. Set a larger `window` for the model, or lower `context.max_tokens`."
        )
    return ""


def _sum(usages: Sequence[Usage]) -> Usage | None:
    return sum(usages, Usage(input_tokens=0, output_tokens=0)) if usages else None


def with_cost(receipt: Receipt, model: ModelInfo, prices: Prices | None) -> Receipt:
    """Add what the requests cost: in new tokens that would have cost as much, and in money if it is known.

    Neither is known where tokens came from a cache and nobody knows what those cost.
    """
    usage = receipt.usage
    if usage is None:
        return receipt
    if usage.cached_tokens and model.cache_read is None:
        return replace(receipt, cost_tokens=None, cost=None)
    cached = usage.cached_tokens * (model.cache_read or 0.0)
    new = usage.input_tokens - usage.cached_tokens - usage.written_tokens
    tokens = new + cached + usage.written_tokens * model.cache_write
    money = None
    if prices is not None:
        money = round((tokens * prices.input + usage.output_tokens * prices.output) / 1_000_000, 6)
    return replace(receipt, cost_tokens=round(tokens), cost=money)


def _layer(plan: ContextPlan, at: int, layer: Layer) -> Iterator[ReceiptItem]:
    """Account for what a layer shows, then for pieces that lost their place and what was withheld."""
    spec, offer, place = plan.materials.spec, plan.materials.offers[at], plan.materials.spec.recipe.places[at]

    def item(part: Section | Piece, tokens: int, *, kept: bool, reason: str) -> ReceiptItem:
        return ReceiptItem(
            layer=layer.source,
            source=part.source or layer.source,
            title=part.title,
            tokens=tokens,
            kept=kept,
            reason=reason,
            origin=part.origin,
            zone="turn" if place == Place.MESSAGE else str(part.stability),
            id=part.id,
            hash=digest_of(part.text) if part.text else "",
        )

    for section in plan.written[at]:
        shown = item(section, section.tokens, kept=True, reason=section.why)
        yield from _parts(shown, section.parts) if section.parts else (shown,)
    gave_way = _GAVE_WAY.format(limit=spec.limits.ceiling)
    for number, piece in enumerate(offer.pieces):
        if number not in plan.visible[at]:
            reason = plan.excluded[at].get(number, gave_way)
            yield item(piece, plan.materials.counter.text(piece.text), kept=False, reason=reason)
    for withheld in offer.withheld:
        unseen = Piece(text="", title=withheld.title, stability=Stability.SESSION, origin=Origin.OPERATOR)
        yield item(unseen, withheld.tokens, kept=False, reason=withheld.reason)


def _parts(whole: ReceiptItem, parts: Sequence[Part]) -> Iterator[ReceiptItem]:
    """Account for a joined section: each piece, then its heading, tags and joints. The tokens add up."""
    rest = whole.tokens - sum(part.tokens for part in parts)
    for at, part in enumerate(parts):
        # Joined texts may cost a token less than alone: the last piece has the difference.
        less = rest if rest < 0 and at == len(parts) - 1 else 0
        yield ReceiptItem(  # `replace` takes three times as long, and there are hundreds of parts
            layer=whole.layer,
            source=part.source or whole.source,
            title=part.title,
            tokens=part.tokens + less,
            kept=whole.kept,
            reason=whole.reason,
            origin=part.origin,
            zone=whole.zone,
            id=part.id,
            hash=part.hash,
        )
    if rest > 0:
        reason = "what the layer puts around its pieces"
        yield replace(whole, title=HEADING, tokens=rest, reason=reason, origin="operator", id="", hash="")


def _history(plan: ContextPlan) -> Iterator[ReceiptItem]:
    """Account for the history in stretches.

    They are: the summary and what is folded into it, what is beyond the recipe's own limits, what gave way
    to the budget, what is shown, and exchanges that never came to their end.
    """
    window, tail = plan.window, plan.window.tail
    before, count, folded = tail.messages_before, len(tail.entries), tail.messages_folded
    limited = before + window.cuts[window.first] if window.limited_by else folded
    start, end = before + window.cuts[plan.cut], before + count
    prices = [0 if at in window.excluded else entry.tokens for at, entry in enumerate(tail.entries)]

    def tokens(first: int, last: int) -> int:
        unseen = tail.tokens_before if folded < first <= before else 0
        return unseen + sum(prices[max(first - 1 - before, 0) : last - before])

    yield from _folded(plan)
    gave_way = _GAVE_WAY.format(limit=plan.materials.spec.limits.ceiling)
    limits = (folded + 1, limited, window.limited_by)
    for first, last, reason in (limits, (limited + 1, start, gave_way), (start + 1, end, "")):
        if first <= last:
            yield stretch(first, last, tokens(first, last), reason)
    for first, last in _runs(window.excluded):
        cost = sum(entry.tokens for entry in tail.entries[first : last + 1])
        yield stretch(before + first + 1, before + last + 1, cost, "the exchange never came to its end")


def _folded(plan: ContextPlan) -> Iterator[ReceiptItem]:
    """Account for the summary, for what is folded into it, and for what an epoch left out behind it."""
    fold, tail = plan.materials.fold, plan.window.tail
    last = tail.messages_folded
    if fold is None and last:
        reason = (
            _LEFT_OUT
            if plan.materials.tail_starts_epoch
            else "folded, and there is no room for their summary"
        )
        yield stretch(1, last, tail.tokens_folded, reason)
    if fold is None:
        return
    summary = stretch(1, fold.last, plan.materials.summary_tokens)
    yield replace(
        summary,
        title=f"summary of messages 1-{fold.last}",
        reason="stands for the messages that were folded into it",
        origin=str(fold.origin if fold.outside_text else "agent"),
    )
    tokens = tail.tokens_folded if last <= fold.last else min(fold.tokens_before, tail.tokens_folded)
    yield stretch(1, fold.last, tokens, "folded into the summary; the log keeps them")
    if last > fold.last:
        yield stretch(fold.last + 1, last, tail.tokens_folded - tokens, _LEFT_OUT)


def _runs(positions: Collection[int]) -> Iterator[tuple[int, int]]:
    """Group neighboring positions into runs, each from its first to its last."""
    for _, run in groupby(enumerate(sorted(positions)), lambda pair: pair[1] - pair[0]):
        members = [position for _, position in run]
        yield members[0], members[-1]


def stretch(first: int, last: int, tokens: int, reason: str = "") -> ReceiptItem:
    """Account for a run of messages in one item; without a reason to drop it, it is shown."""
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
