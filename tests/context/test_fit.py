"""Who gives way, in which order, until everything is within the room."""

from itertools import accumulate

import hypothesis.strategies as st
from hypothesis import given

from weft.context.fit import Fitted, Shelf, fit, price
from weft.context.window import Window, open_window
from weft.types.recipe import HistoryRule
from weft.types.session import Entry, Tail

from samples import user

NO_PIECES = 0
"""The position of the history's own, empty shelf."""


def shelf(*prices: int, soft: bool = True, floor: int = 0) -> Shelf:
    """A layer whose pieces are worth less the later they stand."""
    order = tuple(range(len(prices)))
    return Shelf(order=order, costs=(0, *accumulate(prices)), soft=soft, floor=floor)


def fitted(*shelves: Shelf, window: Window, room: int, order: tuple[int, ...] = (), floor: int = 0) -> Fitted:
    """Fit these layers behind the history, which gives way first unless an order is given."""
    positions = order or (NO_PIECES, *(at for at, one in enumerate(shelves, 1) if one.soft))
    return fit([shelf(floor=floor), *shelves], window, room, order=positions, history_at=NO_PIECES)


def history(*prices: int) -> Tail:
    return Tail(entries=[Entry(user(str(at)), price) for at, price in enumerate(prices)])


WINDOW = open_window(history(10, 10, 10), HistoryRule())
NO_HISTORY = open_window(Tail(), HistoryRule())


def test_what_fits_is_left_alone() -> None:
    result = fitted(shelf(5, 5), shelf(5), window=WINDOW, room=45)

    assert (result.counts, result.cut) == ([0, 2, 1], 0)


def test_history_loses_its_oldest_messages_and_only_as_many_as_needed() -> None:
    result = fitted(shelf(5, 5), window=WINDOW, room=29)

    assert (result.counts, result.cut) == ([0, 2], 2)


def test_a_layer_gives_way_only_after_those_before_it_in_the_order() -> None:
    shelves = (shelf(5, 5), shelf(5, 5))

    assert fitted(*shelves, window=WINDOW, room=15).counts == [0, 1, 2]
    assert fitted(*shelves, window=WINDOW, room=10).counts == [0, 0, 2]
    assert fitted(*shelves, window=WINDOW, room=5).counts == [0, 0, 1]
    assert fitted(*shelves, window=WINDOW, room=15, order=(2, 0, 1)).counts == [0, 2, 0]


def test_within_a_layer_the_piece_worth_least_goes_first() -> None:
    assert fitted(shelf(1, 9, 2), window=NO_HISTORY, room=11).counts == [0, 2]


def test_a_layer_that_must_be_shown_stays_even_if_that_is_too_much() -> None:
    result = fitted(shelf(50, soft=False), shelf(5), window=WINDOW, room=10)

    assert (result.counts, result.cut) == ([0, 1, 0], 3)


def test_a_layer_outside_the_order_is_never_asked() -> None:
    assert fitted(shelf(50), window=NO_HISTORY, room=0, order=(0,)).counts == [0, 1]


def test_history_keeps_its_share_while_others_can_give() -> None:
    assert fitted(shelf(5, 5, 5, 5), window=WINDOW, room=30, floor=20).cut == 1

    result = fitted(shelf(5, 5, 5, 5), window=WINDOW, room=25, floor=20)

    assert (result.counts, result.cut) == ([0, 1], 1)


def test_history_gives_up_its_share_when_nobody_else_can() -> None:
    result = fitted(shelf(5), window=WINDOW, room=10, floor=20)

    assert (result.counts, result.cut) == ([0, 0], 2)


def test_a_layer_keeps_its_share_while_others_can_give() -> None:
    shelves = (shelf(5, 5, 5, floor=10), shelf(5, 5))

    assert fitted(*shelves, window=NO_HISTORY, room=20).counts == [0, 2, 2]
    assert fitted(*shelves, window=NO_HISTORY, room=15).counts == [0, 2, 1]
    assert fitted(*shelves, window=NO_HISTORY, room=5).counts == [0, 1, 0]


def test_a_window_that_cannot_be_cut_costs_others_their_place() -> None:
    uncut = open_window(history(10, 10, 10), HistoryRule(strategy="none"))

    result = fitted(shelf(5, 5), window=uncut, room=35)

    assert (result.counts, result.cut) == ([0, 1], 0)


PRICES = st.lists(st.integers(0, 30), max_size=5)


@given(PRICES, PRICES, PRICES, st.integers(-20, 300), st.integers(0, 60))
def test_everything_fits_or_nothing_is_left_to_give(
    recalled: list[int], skills: list[int], said: list[int], room: int, floor: int
) -> None:
    shelves = (shelf(*recalled, floor=floor), shelf(*skills))
    window = open_window(history(*said), HistoryRule())

    result = fitted(*shelves, window=window, room=room, floor=floor)

    cost = price([shelf(), *shelves], window, result)
    is_empty = result.counts == [0, 0, 0] and result.cut == len(window.cuts) - 1
    assert cost <= room or is_empty
