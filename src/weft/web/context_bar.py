"""The bar of a turn: tokens by layer against the limit, the reserve, and where the cached part ends."""

from __future__ import annotations

from collections.abc import Iterator

from markupsafe import Markup

from weft.types.receipt import Receipt
from weft.web.layers import layer_class
from weft.web.picture import picture, shape, words

_MOSTLY_FREE = 0.4
_WIDTH, _TOP, _HEIGHT = 1000.0, 18.0, 40.0


def context_bar(receipt: Receipt, cached_tokens: int) -> Markup:
    """Draw the tokens of a request: what it holds, what is free, and what is reserved for the answer."""
    total, reserved = receipt.total_tokens, receipt.reserved
    scale = _WIDTH / max(receipt.limit + reserved, total, 1)
    shapes = list(_layers(receipt, scale))
    at = total * scale
    if free := max(receipt.limit - total, 0):
        shapes.append(_part(at, free * scale, "free", f"free: {free:,} tokens"))
    if reserved:
        where = receipt.limit * scale
        shapes.append(
            _part(where, reserved * scale, "reserve", f"reserved for the answer: {reserved:,} tokens")
        )
    if cached_tokens:
        shapes += _boundary(min(cached_tokens, total) * scale, cached_tokens)
    label = f"{total:,} of {receipt.limit:,} tokens"
    return picture(_WIDTH, _TOP + _HEIGHT + 4, shapes, label=label, css="context-bar")


def used_bar(receipt: Receipt, cached_tokens: int = 0) -> Markup:
    """Draw the used part alone, where most of the limit is free."""
    total = receipt.total_tokens
    if not 0 < total < receipt.limit * _MOSTLY_FREE:
        return Markup("")
    shapes = list(_layers(receipt, _WIDTH / total))
    if cached_tokens:
        shapes += _boundary(min(cached_tokens, total) * _WIDTH / total, cached_tokens)
    return picture(_WIDTH, _TOP + _HEIGHT + 4, shapes, label=f"the {total:,} tokens alone", css="context-bar")


def _layers(receipt: Receipt, scale: float) -> Iterator[str]:
    at = 0.0
    for layer, tokens in receipt.by_layer.items():
        yield _part(at, tokens * scale, layer_class(layer), f"{layer}: {tokens:,} tokens")
        at += tokens * scale


def _part(x: float, width: float, css: str, title: str) -> str:
    return shape("rect", x=x, y=_TOP, width=max(width, 1.0), height=_HEIGHT, class_=css, title=title)


def _boundary(x: float, tokens: int) -> list[str]:
    """Mark where the part ends that the request before began with, too."""
    near_end = x > _WIDTH * 0.7
    label = f"cached up to here: about {tokens:,}"
    place = {"text_anchor": "end", "x": x - 6} if near_end else {"text_anchor": "start", "x": x + 6}
    return [
        shape("line", x1=x, x2=x, y1=2.0, y2=_TOP + _HEIGHT + 4, class_="boundary", title=label),
        words(label, y=13, class_="boundary-label", **place),
    ]
