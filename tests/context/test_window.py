"""Which part of a history is shown, and where it may be cut."""

import hypothesis.strategies as st
import pytest
from hypothesis import given

import weft
from weft.context.window import Window, open_window
from weft.types.recipe import HistoryRule
from weft.types.session import Entry, Tail

from samples import assistant, result, tail_of, user

BY_MESSAGE = HistoryRule(unit="message")
BY_EXCHANGE = HistoryRule(unit="exchange")


def spoken(*prices: int, before: int = 0) -> Tail:
    """User and assistant in turn, each message at its price; one token each for those before."""
    speakers = (user, assistant)
    entries = [Entry(speakers[at % 2](str(at)), price) for at, price in enumerate(prices)]
    return Tail(entries=entries, messages_before=before, tokens_before=before)


def shown(window: Window, cut: int | None = None) -> list[str]:
    return [message.content for message in window.messages(window.first if cut is None else cut)]


# --- where a window may begin


def test_by_message_a_window_may_begin_at_every_message() -> None:
    window = open_window(spoken(1, 2, 3), BY_MESSAGE)

    assert window.cuts == (0, 1, 2, 3)
    assert window.costs == (6, 5, 3, 0)


def test_by_exchange_a_window_begins_where_a_user_speaks() -> None:
    window = open_window(spoken(1, 2, 3, 4), BY_EXCHANGE)

    assert window.cuts == (0, 2, 4)
    assert window.costs == (10, 7, 0)


def test_a_whole_history_may_begin_with_whoever_speaks_first() -> None:
    window = open_window(tail_of([assistant("Welcome."), user("Thanks.")]), BY_EXCHANGE)

    assert window.cuts == (0, 1, 2)


def test_the_rest_of_a_longer_history_begins_where_a_user_speaks() -> None:
    window = open_window(tail_of([assistant("Welcome."), user("Thanks.")], before=3), BY_EXCHANGE)

    assert window.cuts == (1, 2)


def test_a_call_is_never_cut_from_any_of_its_results() -> None:
    history = [user("q"), assistant("", "a", "b"), result("a"), result("b"), assistant("done")]

    window = open_window(tail_of(history), BY_MESSAGE)

    assert window.cuts == (0, 1, 4, 5)


def test_a_late_result_holds_everything_back_to_its_call_together() -> None:
    history = [
        assistant("", "a"),
        user("meanwhile"),
        assistant("", "b"),
        result("b"),
        result("a"),
        user("so?"),
    ]

    window = open_window(tail_of(history), BY_MESSAGE)

    assert window.cuts == (0, 5, 6)


def test_an_id_that_is_used_again_belongs_to_its_latest_call() -> None:
    history = [assistant("", "a"), result("a"), user("again"), assistant("", "a"), result("a")]

    window = open_window(tail_of(history), BY_MESSAGE)

    assert window.cuts == (0, 2, 3, 5)


def test_a_window_cannot_begin_with_a_result_whose_call_is_out_of_sight() -> None:
    window = open_window(tail_of([result("a"), result("b"), assistant("so")], before=9), BY_MESSAGE)

    assert window.cuts == (2, 3)


def test_a_call_without_its_result_holds_nothing_back() -> None:
    window = open_window(tail_of([assistant("", "a"), user("never mind")]), BY_MESSAGE)

    assert window.cuts == (0, 1, 2)


def test_an_empty_history_has_one_cut_that_shows_nothing() -> None:
    for rule in (BY_MESSAGE, BY_EXCHANGE, HistoryRule(strategy="truncate"), HistoryRule(strategy="none")):
        window = open_window(Tail(), rule)

        assert (window.cuts, window.costs, window.limited_by) == ((0,), (0,), "")
        assert window.messages(window.first) == ()


# --- the limits of the recipe


@pytest.mark.parametrize(("limit", "expected"), [(6, 6), (5, 4), (4, 4), (3, 2), (1, 0), (0, 0)])
def test_a_number_of_messages_is_met_in_whole_exchanges(limit: int, expected: int) -> None:
    window = open_window(spoken(1, 1, 1, 1, 1, 1), HistoryRule(max_messages=limit))

    assert len(shown(window)) == expected
    assert window.limited_by == ("" if expected == 6 else f"older than the newest {limit} messages")


def test_a_limit_says_its_reason_even_where_what_it_cut_was_never_loaded() -> None:
    window = open_window(spoken(1, 1, before=7), HistoryRule(max_messages=2))

    assert shown(window) == ["0", "1"]
    assert window.limited_by == "older than the newest 2 messages"


@pytest.mark.parametrize(("rule_limit", "limit"), [(None, 7), (7, None), (7, 90), (90, 7)])
def test_the_smaller_limit_of_tokens_binds(rule_limit: int | None, limit: int | None) -> None:
    window = open_window(spoken(3, 3, 3, 3), HistoryRule(max_tokens=rule_limit), history_tokens=limit)

    assert shown(window) == ["2", "3"]
    assert window.limited_by == "over the 7 tokens for history"


def test_what_surrounds_a_message_is_part_of_its_price() -> None:
    window = open_window(spoken(1, 1, 1, 1), HistoryRule(max_tokens=14), per_message=4)

    assert window.costs == (20, 10, 0)
    assert shown(window) == ["2", "3"]


def test_a_history_within_its_limits_has_no_reason_to_be_cut() -> None:
    window = open_window(spoken(3, 3), HistoryRule(max_tokens=6, max_messages=2))

    assert (window.first, window.limited_by) == (0, "")


def test_a_history_that_is_never_cut_has_one_cut_only() -> None:
    window = open_window(spoken(3, 3, 3, 3), HistoryRule(strategy="none"))

    assert window.cuts == (0,)
    assert window.cut_within(-100, after=0) == 0


def test_a_history_that_is_never_cut_still_keeps_to_its_number_of_messages() -> None:
    window = open_window(spoken(3, 3, 3, 3), HistoryRule(strategy="none", max_messages=2))

    assert shown(window, window.cut_within(0, after=0)) == ["2", "3"]
    assert window.limited_by == "older than the newest 2 messages"


# --- truncate


TRUNCATE = HistoryRule(strategy="truncate", max_messages=4, keep_recent=2)


def test_truncate_leaves_a_history_within_its_limits_alone() -> None:
    window = open_window(spoken(3, 3, 3, 3), TRUNCATE, history_tokens=12)

    assert (len(shown(window)), window.limited_by) == (4, "")


def test_truncate_keeps_the_newest_messages_once_there_are_too_many() -> None:
    window = open_window(spoken(3, 3, 3, 3, 3, 3), TRUNCATE)

    assert shown(window) == ["4", "5"]
    assert "over 4 messages" in window.limited_by


def test_truncate_counts_the_messages_that_were_not_loaded() -> None:
    window = open_window(spoken(3, 3, 3, 3, before=2), TRUNCATE)

    assert shown(window) == ["2", "3"]


def test_truncate_cuts_to_two_thirds_of_the_tokens() -> None:
    window = open_window(spoken(*[10] * 14), HistoryRule(strategy="truncate"), history_tokens=120)

    assert len(shown(window)) == 8
    assert "over 120 tokens" in window.limited_by


def test_truncate_keeps_one_exchange_however_large() -> None:
    window = open_window(spoken(10, 10, 900, 900), HistoryRule(strategy="truncate"), history_tokens=5)

    assert shown(window) == ["2", "3"]


@pytest.mark.parametrize(
    "rule", [HistoryRule(strategy="truncate", max_messages=0), HistoryRule(strategy="truncate", max_tokens=0)]
)
def test_truncate_takes_zero_as_a_limit_and_not_as_none(rule: HistoryRule) -> None:
    window = open_window(spoken(1, 1, 1, 1, 1, 1), rule)

    assert shown(window) == ["4", "5"]
    assert window.limited_by


def test_truncate_never_says_that_more_messages_are_shown_than_are() -> None:
    rule = HistoryRule(strategy="truncate", max_messages=4, keep_recent=100)

    window = open_window(spoken(1, 1, 1, 1, 1, 1), rule)

    assert len(shown(window)) == 4
    assert "100" not in window.limited_by


def test_truncate_counts_what_lies_between_the_unloaded_and_the_first_cut() -> None:
    tail = Tail(
        entries=[Entry(assistant("long"), 500), Entry(user("q"), 1), Entry(assistant("a"), 1)],
        messages_before=1,
        tokens_before=1,
    )

    window = open_window(tail, HistoryRule(strategy="truncate"), history_tokens=100)

    assert shown(window) == ["q", "a"]
    assert "over 100 tokens" in window.limited_by


def test_exchanges_that_never_ended_are_left_out_where_a_history_is_shortened() -> None:
    call = weft.ToolCall(id="1", name="look")
    pending = weft.Message(role="assistant", content="", tool_calls=(call,))
    said = [user("old"), assistant("x"), user("lost"), pending, user("new"), assistant("y"), user("now")]
    tail = Tail(entries=[Entry(message, 1) for message in said])

    whole = open_window(tail, HistoryRule(strategy="truncate", max_messages=7))
    roomy = open_window(tail, HistoryRule(strategy="truncate", max_messages=6, keep_recent=5))
    cut = open_window(tail, HistoryRule(strategy="truncate", max_messages=6, keep_recent=3))

    assert shown(whole) == ["old", "x", "lost", "", "new", "y", "now"], "nothing is left out below the limit"
    assert shown(roomy) == ["old", "x", "new", "y", "now"], "what is left out takes no place"
    assert shown(cut) == ["new", "y", "now"], "the last one may still be going on"
    assert cut.costs[cut.first] == 3
    assert cut.length(cut.first) == 3


# --- cutting to a budget


@pytest.mark.parametrize(("budget", "cut"), [(99, 0), (10, 0), (9, 1), (7, 1), (6, 2), (0, 2), (-1, 2)])
def test_the_earliest_cut_within_the_budget_is_chosen(budget: int, cut: int) -> None:
    window = open_window(spoken(1, 2, 3, 4), BY_EXCHANGE)

    assert window.cut_within(budget, after=0) == cut


def test_a_cut_is_never_taken_back() -> None:
    window = open_window(spoken(1, 2, 3, 4), BY_EXCHANGE)

    assert window.cut_within(99, after=1) == 1


def test_of_windows_that_cost_the_same_the_longest_is_chosen() -> None:
    window = open_window(spoken(5, 0, 0, 0), BY_MESSAGE)

    assert window.cut_within(0, after=0) == 1


@given(
    st.lists(st.integers(0, 50), max_size=20), st.integers(-10, 600), st.sampled_from(("message", "exchange"))
)
def test_a_window_within_a_budget_is_the_longest_that_it_pays_for(
    prices: list[int], budget: int, unit: str
) -> None:
    window = open_window(spoken(*prices), BY_MESSAGE if unit == "message" else BY_EXCHANGE)

    cut = window.cut_within(budget, after=0)

    paid = [at for at, cost in enumerate(window.costs) if cost <= budget]
    assert cut == (paid[0] if paid else len(window.cuts) - 1)
    assert sum(prices[window.cuts[cut] :]) == window.costs[cut]
