"""Who gives way, in which order, until everything is within the room."""

import hypothesis.strategies as st
import pytest
from hypothesis import given

from weft.context.fit import Shelf, fit
from weft.context.window import open_window
from weft.types.recipe import HistoryRule
from weft.types.records import Entry, Tail

from samples import user

ORDER = ("history", "recall", "skills")


def shelf(source: str, *prices: int, soft: bool = True, floor: int = 0) -> Shelf:
    """A layer whose pieces are worth less the later they stand."""
    costs = [0]
    for price in prices:
        costs.append(costs[-1] + price)
    order = tuple(range(len(prices)))
    return Shelf(source=source, order=order, costs=tuple(costs), soft=soft, floor=floor)


def history(*prices: int) -> Tail:
    return Tail(entries=[Entry(user(str(at)), price) for at, price in enumerate(prices)])


WINDOW = open_window(history(10, 10, 10), HistoryRule())
NO_HISTORY = open_window(Tail(), HistoryRule())


def test_what_fits_is_left_alone() -> None:
    fitted = fit([shelf("recall", 5, 5), shelf("skills", 5)], WINDOW, 45, order=ORDER)

    assert (fitted.kept, fitted.cut) == ([2, 1], 0)


def test_history_loses_its_oldest_messages_and_only_as_many_as_needed() -> None:
    fitted = fit([shelf("recall", 5, 5)], WINDOW, 29, order=ORDER)

    assert (fitted.kept, fitted.cut) == ([2], 2)


def test_a_layer_gives_way_only_after_those_before_it_in_the_order() -> None:
    shelves = [shelf("recall", 5, 5), shelf("skills", 5, 5)]

    assert fit(shelves, WINDOW, 15, order=ORDER).kept == [1, 2]
    assert fit(shelves, WINDOW, 10, order=ORDER).kept == [0, 2]
    assert fit(shelves, WINDOW, 5, order=ORDER).kept == [0, 1]
    assert fit(shelves, WINDOW, 15, order=("skills", "history", "recall")).kept == [2, 0]


def test_within_a_layer_the_piece_worth_least_goes_first() -> None:
    fitted = fit([shelf("recall", 1, 9, 2)], NO_HISTORY, 11, order=ORDER)

    assert fitted.kept == [2]


def test_of_two_layers_of_one_source_the_later_gives_way_first() -> None:
    fitted = fit([shelf("recall", 5), shelf("recall", 5)], NO_HISTORY, 5, order=ORDER)

    assert fitted.kept == [1, 0]


def test_a_layer_that_must_be_shown_stays_even_if_that_is_too_much() -> None:
    fitted = fit([shelf("skills", 50, soft=False), shelf("recall", 5)], WINDOW, 10, order=ORDER)

    assert (fitted.kept, fitted.cut) == ([1, 0], 3)


def test_a_source_outside_the_order_is_never_asked() -> None:
    fitted = fit([shelf("facts", 50)], NO_HISTORY, 0, order=ORDER)

    assert fitted.kept == [1]


def test_history_keeps_its_share_while_others_can_give() -> None:
    shelves = [shelf("recall", 5, 5, 5, 5)]

    assert fit(shelves, WINDOW, 30, order=ORDER, history_floor=20).cut == 1
    fitted = fit(shelves, WINDOW, 25, order=ORDER, history_floor=20)

    assert (fitted.kept, fitted.cut) == ([1], 1)


def test_history_gives_up_its_share_when_nobody_else_can() -> None:
    fitted = fit([shelf("recall", 5)], WINDOW, 10, order=ORDER, history_floor=20)

    assert (fitted.kept, fitted.cut) == ([0], 2)


def test_a_layer_keeps_its_share_while_others_can_give() -> None:
    shelves = [shelf("recall", 5, 5, 5, floor=10), shelf("skills", 5, 5)]

    assert fit(shelves, NO_HISTORY, 20, order=ORDER).kept == [2, 2]
    assert fit(shelves, NO_HISTORY, 15, order=ORDER).kept == [2, 1]
    assert fit(shelves, NO_HISTORY, 5, order=ORDER).kept == [1, 0]


def test_a_window_that_cannot_be_cut_costs_others_their_place() -> None:
    uncut = open_window(history(10, 10, 10), HistoryRule(strategy="none"))

    fitted = fit([shelf("recall", 5, 5)], uncut, 35, order=ORDER)

    assert (fitted.kept, fitted.cut) == ([1], 0)


@pytest.mark.parametrize(("budget", "most"), [(99, 3), (15, 3), (14, 2), (5, 1), (4, 0), (0, 0), (-1, 0)])
def test_a_shelf_knows_how_many_pieces_a_budget_pays_for(budget: int, most: int) -> None:
    assert shelf("recall", 5, 5, 5).most_within(budget) == most


PRICES = st.lists(st.integers(0, 30), max_size=5)


@given(PRICES, PRICES, PRICES, st.integers(-20, 300), st.integers(0, 60))
def test_everything_fits_or_nothing_is_left_to_give(
    recalled: list[int], skills: list[int], said: list[int], room: int, floor: int
) -> None:
    shelves = [shelf("recall", *recalled, floor=floor), shelf("skills", *skills)]
    window = open_window(history(*said), HistoryRule())

    fitted = fit(shelves, window, room, order=ORDER, history_floor=floor)

    cost = sum(one.costs[kept] for one, kept in zip(shelves, fitted.kept, strict=True))
    cost += window.costs[fitted.cut]
    given_all = fitted.kept == [0, 0] and fitted.cut == len(window.cuts) - 1
    assert cost <= room or given_all
