"""How deep a history is folded, by the pace at which it grows."""

import pytest

from weft.context.pace import Pace, depth_of, marks_of, summary_room
from weft.types.recipe import HistoryRule

RULE = HistoryRule(strategy="summarize", fold_at=0.85, fold_to=0.25)
ROOM = 10_000


def test_a_slow_history_is_folded_to_the_low_mark_and_a_fast_one_deeper() -> None:
    slow, fast = (marks_of(RULE, ROOM, Pace(tokens=tokens)) for tokens in (100, 650))

    assert (slow.high, slow.low, slow.target) == (8_500, 2_500, 2_500)
    assert fast.target == 8_500 - 12 * 650 < fast.low


def test_the_newest_exchange_stays_whole_however_fast_the_history_grows() -> None:
    marks = marks_of(RULE, ROOM, Pace(tokens=1_000))

    assert marks.target == 0
    assert depth_of(marks, Pace(tokens=1_000, newest=900), summary=400) == 1_300


def test_a_newest_exchange_above_the_low_mark_does_not() -> None:
    marks = marks_of(RULE, ROOM, Pace(tokens=1_000))

    assert depth_of(marks, Pace(tokens=1_000, newest=4_000), summary=400) == marks.low


@pytest.mark.parametrize(("tokens", "most"), [(100, 833), (700, 416), (1_000, 416)])
def test_a_summary_has_a_third_of_what_is_left_and_never_less_than_a_sixth_of_the_low_mark(
    tokens: int, most: int
) -> None:
    assert summary_room(marks_of(RULE, ROOM, Pace(tokens=tokens))) == most


def test_a_history_that_was_just_cut_may_pass_the_high_mark_while_the_next_turn_fits() -> None:
    recent, old = (marks_of(RULE, ROOM, Pace(tokens=400, since=since)) for since in (9, 10))

    assert recent.due == ROOM - 500
    assert old.due == old.high == 8_500
