"""Days of the calendar: months, seasons, holidays, and units of time away. No arithmetic here overflows."""

from __future__ import annotations

import calendar
from collections.abc import Callable
from datetime import date
from typing import TypeAlias

from weft.dates.words import EASTER_DAYS, HOLIDAYS, SEASONS, THANKSGIVING

Days: TypeAlias = tuple[date, date]
Yearly: TypeAlias = Callable[[int], "Days | None"]


def day_at(ordinal: int) -> date | None:
    return date.fromordinal(ordinal) if 1 <= ordinal <= date.max.toordinal() else None


def window(first: int, last: int) -> Days | None:
    """Return the days between two ordinals, as far as they exist."""
    start, end = day_at(max(first, 1)), day_at(min(last, date.max.toordinal()))
    return (start, end) if start and end and start <= end else None


def month_of(year: int, month: int) -> Days | None:
    """Return a month, where `month` may also be one before or after the year's."""
    year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
    if not 1 <= year <= 9999:
        return None
    return date(year, month, 1), date(year, month, calendar.monthrange(year, month)[1])


def joined(first: Days | None, last: Days | None) -> Days | None:
    return (first[0], last[1]) if first and last and first[0] <= last[1] else None


def _easter(year: int) -> int:
    """Return the ordinal of Easter Sunday (Gauss, in the form of Meeus)."""
    century, rest = divmod(year, 100)
    lunar = (19 * (year % 19) + century - century // 4 - (century - (century + 8) // 25 + 1) // 3 + 15) % 30
    week = (32 + 2 * (century % 4) + 2 * (rest // 4) - lunar - rest % 4) % 7
    shift = (year % 19 + 11 * lunar + 22 * week) // 451
    month, day = divmod(lunar + week - 7 * shift + 114, 31)
    return date(year, month, day + 1).toordinal()


def yearly_days(name: int) -> Yearly:
    """Return the function from a year to a month (1 to 12), season or holiday."""

    def days(year: int) -> Days | None:
        if not 1 <= year <= 9998:
            return None
        if name <= 12:
            return month_of(year, name)
        if name in SEASONS:
            first, last = SEASONS[name]
            return joined(month_of(year, first), month_of(year + (last < first), last))
        if name in HOLIDAYS:
            month, day, last_month, last_day = HOLIDAYS[name]
            return date(year, month, day), date(year + (last_month < month), last_month, last_day)
        if name == THANKSGIVING:
            day = 22 + (3 - date(year, 11, 22).weekday()) % 7
            return date(year, 11, day), date(year, 11, day)
        before, after = EASTER_DAYS.get(name, (0, 0))
        return window(_easter(year) + before, _easter(year) + after)

    return days


def newest(yearly: Yearly, year: int, accepts: Callable[[Days], bool], step: int = -1) -> Days | None:
    """Return the first accepted days of `year` and the years after it in steps of `step`."""
    for candidate in range(year, year + 10 * step, step):
        days = yearly(candidate)
        if days and accepts(days):
            return days
    return None


def which_of_years(yearly: Yearly, which: int, today: date) -> Days | None:
    """Return the last (-1), this (0) or next (1) of something that comes each year."""
    if which < 0:
        return newest(yearly, today.year, lambda days: days[1] < today)
    if which > 0:
        return newest(yearly, today.year, lambda days: days[0] > today, 1)
    before = yearly(today.year - 1)
    return before if before and before[0] <= today <= before[1] else yearly(today.year)


def whole_year(year: int) -> Days | None:
    return joined(month_of(year, 1), month_of(year, 12))


def unit_of(kind: str, count: int, today: date) -> Days | None:
    """Return the calendar day, week, month, year or weekend that is `count` away from today's."""
    if kind == "D":
        return window(today.toordinal() + count, today.toordinal() + count)
    if kind in "WK":
        monday = today.toordinal() - today.weekday() + 7 * count
        return window(monday + 5 * (kind == "K"), monday + 6)
    if kind == "O":
        return month_of(today.year, today.month + count)
    return whole_year(today.year + count)


def away(kind: str, count: int, today: date) -> Days | None:
    """Return the days that are so many units away: as wide as the unit, or half of it to either side."""
    if kind in "WO":
        day = same_day(kind, count, today)
        slack = 3 if kind == "W" else 15
        return window(day - slack, day + slack) if day else None
    return unit_of(kind, count, today)


def same_day(kind: str, count: int, today: date) -> int | None:
    """Return the ordinal of the day so many units away from today."""
    if kind in "DWK":
        return today.toordinal() + count * (1 if kind == "D" else 7)
    days = month_of(today.year, today.month + count * (12 if kind == "Y" else 1))
    return min(days[0].toordinal() + today.day - 1, days[1].toordinal()) if days else None
