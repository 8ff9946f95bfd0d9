"""What fits: who gives way, in which order, until everything is within the budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from weft.context.window import Window


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf:
    """One layer's pieces and their price.

    `order` lists the pieces from the one worth most to the one worth least, and `costs[k]` is the price
    of showing the first `k` of them. `floor` is the layer's share: below it the layer gives way only
    when nobody else can. A shelf that is not `soft` never gives way. `excluded` are pieces that a limit
    of the layer's own keeps out, with the reason.
    """

    order: tuple[int, ...]
    costs: tuple[int, ...]
    soft: bool
    floor: int = 0
    excluded: Mapping[int, str] = field(default_factory=dict)


@dataclass(slots=True)
class Fitted:
    """How many pieces of each shelf are shown, and at which cut the history begins."""

    kept: list[int]
    cut: int


def everything(shelves: Sequence[Shelf], window: Window) -> Fitted:
    """All that the layers' own limits allow, whatever it costs."""
    return Fitted([len(shelf.order) for shelf in shelves], window.first)


def price(shelves: Sequence[Shelf], window: Window, fitted: Fitted) -> int:
    """What the pieces and the history of a fit cost, as the sum of their prices."""
    pieces = sum(shelf.costs[kept] for shelf, kept in zip(shelves, fitted.kept, strict=True))
    return pieces + window.costs[fitted.cut]


def fit(
    shelves: Sequence[Shelf], window: Window, room: int, *, order: Sequence[int], history_at: int
) -> Fitted:
    """Take from the layers, in the given order, until what is left fits the room.

    First each gives up what lies above its share, then, if that was not enough, all it has, even what
    rounding made free: joined with others it still costs something. History loses its oldest exchanges,
    other layers their least valuable pieces. What cannot be taken stays, even if that is too much: the
    caller knows whether to send it or to refuse. There is a shelf for every layer; the one at
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
    taken = 0
    while fitted.kept[at] and taken < excess:
        if above_share and shelf.costs[fitted.kept[at]] <= shelf.floor:
            break
        taken += shelf.costs[fitted.kept[at]] - shelf.costs[fitted.kept[at] - 1]
        fitted.kept[at] -= 1
    return taken
