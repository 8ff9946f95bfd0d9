"""When something that repeats is due next, by the clock on the wall."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft
from weft.types.repeat import WORDS, check_repeat, next_due

LISBON, SYDNEY = ZoneInfo("Europe/Lisbon"), ZoneInfo("Australia/Sydney")


def at(text: str, zone: ZoneInfo = LISBON) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=zone)


def following(first: str, repeat: str, *, count: int, zone: ZoneInfo = LISBON) -> list[str]:
    found, moment = [], at(first, zone) - timedelta(seconds=1)
    for _ in range(count):
        due = next_due(at(first, zone), repeat, moment)
        assert due is not None
        found.append(f"{due:%m-%d %H:%M}")
        moment = due
    return found


def test_once_is_once() -> None:
    first = at("2026-11-16 09:00")

    assert next_due(first, "once", first - timedelta(minutes=1)) == first
    assert next_due(first, "once", first) is None


def test_every_day_weekday_and_week() -> None:
    assert following("2026-11-12 09:00", "daily", count=3) == ["11-12 09:00", "11-13 09:00", "11-14 09:00"]
    assert following("2026-11-12 09:00", "weekdays", count=3) == ["11-12 09:00", "11-13 09:00", "11-16 09:00"]
    assert following("2026-11-14 09:00", "weekdays", count=1) == ["11-16 09:00"]
    assert following("2026-11-12 09:00", "weekly", count=2) == ["11-12 09:00", "11-19 09:00"]


def test_a_month_that_is_too_short_has_its_last_day_and_the_next_the_right_one() -> None:
    assert following("2026-01-31 08:00", "monthly", count=4) == [
        "01-31 08:00",
        "02-28 08:00",
        "03-31 08:00",
        "04-30 08:00",
    ]


def test_the_time_on_the_wall_stays_when_the_clock_changes() -> None:
    assert following("2026-03-28 09:00", "daily", count=2) == ["03-28 09:00", "03-29 09:00"]
    spring = next_due(at("2026-03-28 09:00"), "daily", at("2026-03-28 09:00"))
    assert spring is not None
    assert spring.utcoffset() == timedelta(hours=1)


def test_a_time_that_the_clock_skips_is_due_an_hour_later_that_day_only() -> None:
    assert following("2026-03-28 01:30", "daily", count=3) == ["03-28 01:30", "03-29 02:30", "03-30 01:30"]


def test_a_time_that_the_clock_shows_twice_is_due_once() -> None:
    assert following("2026-10-24 01:30", "daily", count=3) == ["10-24 01:30", "10-25 01:30", "10-26 01:30"]


def test_on_the_other_side_of_the_world_it_is_the_same() -> None:
    assert following("2026-10-03 02:30", "daily", count=3, zone=SYDNEY) == [
        "10-03 02:30",
        "10-04 03:30",
        "10-05 02:30",
    ]


def test_cron_is_read_by_the_clock_on_the_wall() -> None:
    assert following("2026-11-16 00:00", "30 7 * * MON-FRI", count=2) == ["11-16 07:30", "11-17 07:30"]


def test_what_was_missed_for_years_is_found_at_once() -> None:
    due = next_due(at("2020-02-29 09:00"), "monthly", at("2026-11-16 12:00"))

    assert due == at("2026-11-29 09:00")


@pytest.mark.parametrize(
    ("text", "kept"), [("Daily", "daily"), (" once ", "once"), ("0 9 * * mon", "0 9 * * MON")]
)
def test_the_words_are_kept_in_one_form(text: str, kept: str) -> None:
    assert check_repeat(text) == kept


@pytest.mark.parametrize("text", ["dayly", "", "60 9 * * *", "* * * *", "every so often in a while"])
def test_nothing_else_repeats(text: str) -> None:
    with pytest.raises(weft.ConfigError):
        check_repeat(text)


@given(
    st.datetimes(min_value=datetime(2024, 1, 1), max_value=datetime(2030, 1, 1)),
    st.sampled_from([word for word in WORDS if word != "once"]),
    st.timedeltas(min_value=timedelta(days=-40), max_value=timedelta(days=400)),
    st.sampled_from([LISBON, SYDNEY, ZoneInfo("UTC"), ZoneInfo("America/St_Johns")]),
)
def test_the_next_time_is_after_the_moment_and_there_is_none_between(
    first: datetime, repeat: str, passed: timedelta, zone: ZoneInfo
) -> None:
    begin = first.replace(tzinfo=zone).astimezone(UTC).astimezone(zone)
    moment = begin + passed

    due = next_due(begin, repeat, moment)

    assert due is not None
    assert due > moment
    assert due >= begin
    between = next_due(begin, repeat, due - timedelta(seconds=1))
    assert between == due
    longest = {"daily": 1, "weekdays": 3, "weekly": 7, "monthly": 31}[repeat]
    assert due - max(moment, begin) <= timedelta(days=longest, hours=26)
