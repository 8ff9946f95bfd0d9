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

    source: str
    order: tuple[int, ...]
    costs: tuple[int, ...]
    soft: bool
    floor: int = 0
    excluded: Mapping[int, str] = field(default_factory=dict)

    def most_within(self, budget: int) -> int:
        """How many pieces a budget pays for."""
        return max(k for k, cost in enumerate(self.costs) if cost <= budget or k == 0)


@dataclass(slots=True)
class Fitted:
    """How many pieces of each shelf are shown, and at which cut the history begins."""

    kept: list[int]
    cut: int


def fit(
    shelves: Sequence[Shelf], window: Window, room: int, *, order: Sequence[str], history_floor: int = 0
) -> Fitted:
    """Take from the layers, in the given order, until what is left fits the room.

    First each gives up what lies above its share, then, if that was not enough, all it has, even what
    rounding made free: joined with others it still costs something. History
    loses its oldest exchanges, other layers their least valuable pieces. What cannot be taken stays,
    even if that is too much: the caller knows whether to send it or to refuse.
    """
    fitted = Fitted([len(shelf.order) for shelf in shelves], window.first)
    excess = sum(shelf.costs[-1] for shelf in shelves) + window.costs[window.first] - room
    for above_share in (True, False):
        for source in order:
            if excess <= 0:
                return fitted
            if source == "history":
                excess -= _take_history(fitted, window, excess, history_floor if above_share else None)
            else:
                excess -= _take_pieces(fitted, shelves, source, excess, above_share=above_share)
    return fitted


def _take_history(fitted: Fitted, window: Window, excess: int, floor: int | None) -> int:
    before = window.costs[fitted.cut]
    budget = before - excess if floor is None else max(floor, before - excess)
    fitted.cut = window.cut_within(budget, after=fitted.cut)
    return before - window.costs[fitted.cut]


def _take_pieces(
    fitted: Fitted, shelves: Sequence[Shelf], source: str, excess: int, *, above_share: bool
) -> int:
    taken = 0
    for at in reversed(range(len(shelves))):
        shelf = shelves[at]
        if shelf.source != source or not shelf.soft:
            continue
        while fitted.kept[at] and taken < excess:
            if above_share and shelf.costs[fitted.kept[at]] <= shelf.floor:
                break
            taken += shelf.costs[fitted.kept[at]] - shelf.costs[fitted.kept[at] - 1]
            fitted.kept[at] -= 1
    return taken
