"""A conversation over time: for each turn its tokens by layer, what was cached, what it cost, what began."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from weft.types.sent import TurnBrief
from weft.types.session import Fold
from weft.web.layers import layer_class
from weft.web.picture import link, picture, shape, words

_WIDTH, _LEFT, _TOP, _BARS, _GAP, _COST = 1000.0, 60.0, 16.0, 210.0, 34.0, 60.0
_BOTTOM = _TOP + _BARS
_LINES = 4


def over_time(turns: Sequence[TurnBrief], folds: Sequence[Fold]) -> Markup:
    """Draw a bar for each turn, with a line for the part that was cached and marks where epochs begin."""
    if not turns:
        return Markup("")
    step = (_WIDTH - _LEFT) / max(len(turns), 12)
    most = max((turn.receipt.total_tokens for turn in turns if turn.receipt), default=0) or 1
    dearest = max((cost_of(turn) for turn in turns), default=0) or 1
    shapes = [*_axis(most), words("cost", x=_LEFT - 8, y=_BOTTOM + _GAP + _COST, text_anchor="end")]
    for at, turn in enumerate(turns):
        x = _LEFT + at * step
        shapes.append(_turn(turn, x, step, most=most, dearest=dearest))
    shapes.append(_cached(turns, step))
    label = (
        f"Tokens of turns {turns[0].info.number} to {turns[-1].info.number}; the table below has the numbers"
    )
    return picture(_WIDTH, _BOTTOM + _GAP + _COST + 6, shapes, label=label, css="over-time")


def cost_of(turn: TurnBrief) -> float:
    """Return what the input of a turn cost: in new tokens, or as many as it has if nothing is known."""
    receipt = turn.receipt
    return (receipt.cost_tokens or receipt.total_tokens) if receipt else 0


def _axis(most: int) -> list[str]:
    """Draw the lines behind the bars, each with its tokens."""
    lines = list[str]()
    for part in range(_LINES + 1):
        y = _BOTTOM - _BARS * part / _LINES
        lines.append(shape("line", x1=_LEFT, x2=_WIDTH, y1=y, y2=y, class_="axis"))
        lines.append(words(f"{most * part // _LINES:,}", x=_LEFT - 8, y=y + 4, text_anchor="end"))
    return lines


def _turn(turn: TurnBrief, x: float, step: float, *, most: int, dearest: float) -> str:
    """Draw one turn: its layers, its cost below, and a mark if an epoch began with it."""
    width, shapes, y = max(step - 2, 1.0), list[str](), _BOTTOM
    receipt = turn.receipt
    for layer, tokens in receipt.by_layer.items() if receipt else ():
        height = _BARS * tokens / most
        y -= height
        shapes.append(shape("rect", x=x, y=y, width=width, height=height, class_=layer_class(layer)))
    cost = _COST * cost_of(turn) / dearest
    top = _BOTTOM + _GAP + _COST - cost
    shapes.append(shape("rect", x=x, y=top, width=width, height=cost, class_="cost"))
    if receipt and receipt.epoch_why:
        low, middle = _BOTTOM + 18, x + width / 2
        mark = f"{x:.1f},{low:.1f} {x + width:.1f},{low:.1f} {middle:.1f},{low - 12:.1f}"
        is_fold = receipt.epoch_why.startswith("fold")
        shapes.append(shape("polygon", points=mark, class_="fold" if is_fold else "epoch"))
    # A place for the mouse that is as high as the picture, however small the bar is.
    shapes.append(shape("rect", x=x, y=_TOP, width=step, height=_BARS + _GAP + _COST, class_="hover"))
    label = describe(turn)
    return link(f"/turns/{turn.info.id}", shape("g", *shapes, title=label, class_="turn"), label=label)


def describe(turn: TurnBrief) -> str:
    """Say of a turn what the picture shows."""
    receipt = turn.receipt
    if receipt is None:
        return f"turn {turn.info.number}: {turn.info.state}"
    parts = [f"turn {turn.info.number}: {receipt.total_tokens:,} tokens, {turn.share:.0%} as before"]
    if receipt.usage:
        parts.append(f"{receipt.usage.cached_tokens:,} read from the cache")
    if receipt.epoch_why:
        parts.append(f"epoch {receipt.epoch} begins ({receipt.epoch_why})")
    return ", ".join(parts)


def _cached(turns: Sequence[TurnBrief], step: float) -> str:
    """Draw a line through the part of each request that was the same as before."""
    points = [
        f"{_LEFT + (at + 0.5) * step - 1:.1f},{_BOTTOM - _BARS * turn.share:.1f}"
        for at, turn in enumerate(turns)
        if turn.bytes
    ]
    return shape("polyline", points=" ".join(points), class_="share", fill="none")
