"""Fitting: which layers give way, in which order, until everything is within the budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from weft.context.window import Window


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf:
    """One layer's pieces and their price.

    `order` lists the pieces from the one worth most to the one worth least, and `costs[k]` is the price
    of showing the first `k` of them. `floor` is the layer's share: below it the layer gives way only
    when no other can. A shelf that is not `soft` never gives way. `excluded` has the pieces that a limit
    of the layer keeps out, with the reason.
    """

    order: tuple[int, ...]
    costs: tuple[int, ...]
    soft: bool
    floor: int = 0
    excluded: Mapping[int, str] = field(default_factory=dict)


@dataclass(slots=True)
class Fitted:
    """How many pieces of each shelf are shown, and at which cut the history begins."""

    counts: list[int]
    cut: int


def everything(shelves: Sequence[Shelf], window: Window) -> Fitted:
    """Take everything that the layers' own limits allow, whatever it costs."""
    return Fitted([len(shelf.order) for shelf in shelves], window.first)


def price(shelves: Sequence[Shelf], window: Window, fitted: Fitted) -> int:
    """Add up the prices of the pieces and of the history of a fit."""
    pieces = sum(shelf.costs[count] for shelf, count in zip(shelves, fitted.counts, strict=True))
    return pieces + window.costs[fitted.cut]


def fit(
    shelves: Sequence[Shelf], window: Window, room: int, *, order: Sequence[int], history_at: int
) -> Fitted:
    """Take from the layers, in the given order, until what is left fits the room.

    First each layer gives up what lies above its share. If that is not enough, each gives up all it has,
    even pieces that cost nothing after rounding: joined with others they still cost something. The history
    loses its oldest exchanges, other layers lose their least valuable pieces. The result may still be too
    large: the caller decides whether to send it or to refuse. There is a shelf for every layer; the one at
    `history_at` is empty but has the history's share.
    """
    fitted = everything(shelves, window)
    excess = price(shelves, window, fitted) - room
    for above_share in (True, False):
        for at in order:
            if excess <= 0:
                return fitted
            if at == history_at:
                floor = shelves[at].floor if above_share else None
                excess -= _take_history(fitted, window, excess, floor)
            else:
                excess -= _take_pieces(fitted, shelves[at], at, excess, above_share=above_share)
    return fitted


def _take_history(fitted: Fitted, window: Window, excess: int, floor: int | None) -> int:
    before = window.costs[fitted.cut]
    budget = before - excess if floor is None else max(floor, before - excess)
    fitted.cut = window.cut_within(budget, after=fitted.cut)
    return before - window.costs[fitted.cut]


def _take_pieces(fitted: Fitted, shelf: Shelf, at: int, excess: int, *, above_share: bool) -> int:
    saved = 0
    while (count := fitted.counts[at]) and saved < excess:
        if above_share and shelf.costs[count] <= shelf.floor:
            break
        saved += shelf.costs[count] - shelf.costs[count - 1]
        fitted.counts[at] -= 1
    return saved
