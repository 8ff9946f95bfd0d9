"""The rules from matched tokens to the days that they name."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import NamedTuple

from weft.dates.days import (
    Days,
    Yearly,
    away,
    day_at,
    joined,
    month_of,
    newest,
    same_day,
    unit_of,
    which_of_years,
    whole_year,
    window,
    yearly_days,
)
from weft.dates.tokens import Token


class Mention(NamedTuple):
    """The days of a date, and how to move them: `yearly` to another year, `weekly` by weeks."""

    days: Days
    yearly: Yearly | None = None
    weekly: bool = False


class Node(NamedTuple):
    """A token, and the mention that it stands for once a pattern matched."""

    token: Token
    mention: Mention | None


# --- Rules: from the nodes of a match to a mention


def _values(part: list[Node], kinds: str) -> list[int]:
    return [node.token.value for node in part if node.token.kind in kinds]


def _kind(part: list[Node], kinds: str) -> str:
    return next(node.token.kind for node in part if node.token.kind in kinds)


def _fixed(days: Days | None) -> Mention | None:
    return Mention(days) if days else None


def _which_of(part: list[Node], kinds: str) -> int | None:
    """Return the last (-1), this (0) or next (1) that stands beside a token of one of these kinds."""
    rest = [node.token for node in part if node.token.kind != "o"]
    for position, token in enumerate(rest):
        if token.kind in kinds:
            if position and rest[position - 1].kind in "xq":
                return rest[position - 1].value
            if position + 1 < len(rest) and rest[position + 1].kind == "q":
                return rest[position + 1].value
    return None


def _year_of(part: list[Node], today: date) -> int | None:
    """Return the year that a match names, as a number or as last, this or next year."""
    years = _values(part, "y")
    which = _which_of(part, "Y")
    return years[0] if years else None if which is None else today.year + which


def _in_year(yearly: Yearly, part: list[Node], today: date) -> Mention | None:
    year = _year_of(part, today)
    if year is not None:
        return _fixed(yearly(year))
    days = newest(yearly, today.year, lambda days: days[0] <= today)
    return Mention(days, yearly) if days else None


def _day_of_month(month: int, first: int, last: int) -> Yearly:
    def days(year: int) -> Days | None:
        whole = month_of(year, month)
        if not whole or not 1 <= first <= last <= whole[1].day:
            return None
        return date(year, month, first), date(year, month, last)

    return days


def _calendar_days(part: list[Node], today: date) -> Mention | None:
    days = _values(part, "dr")
    name = _values(part, "MH")[0]
    return _in_year(_day_of_month(name, days[0], days[-1]) if days else yearly_days(name), part, today)


def _day_alone(part: list[Node], today: date) -> Mention | None:
    """Return the newest such day of a month that is not ahead."""
    number = _values(part, "dr")[-1]
    year, month = today.year, today.month
    for _ in range(12):
        whole = month_of(year, month)
        if whole and number <= whole[1].day and date(year, month, number) <= today:
            return _fixed((date(year, month, number),) * 2)
        year, month = (year, month - 1) if month > 1 else (year - 1, 12)
    return None


def _nth(kind: str, which: int, weekday: int, whole: Days) -> Days | None:
    """Return the nth (from 0; -1 is the last) week, day, weekend or weekday of some days."""
    start, end = whole[0].toordinal(), whole[1].toordinal()
    length, step = {"W": (7, 7), "D": (1, 1), "K": (2, 7), "w": (1, 7)}[kind]
    offset = (weekday - whole[0].weekday()) % 7 if kind in "Kw" else 0
    first = start + offset + which * step
    if which < 0:
        first = end + 1 - length
        first -= (first - start - offset) % step if kind in "Kw" else 0
    return window(first, min(end, first + length - 1)) if start <= first <= end else None


def _week_of(part: list[Node], today: date) -> Mention | None:
    """Resolve "the first week of August" and "the last Friday in May"."""
    ordinals = _values(part, "r")
    kind = _kind(part, "WDKw")
    weekday = _values(part, "w")[0] if kind == "w" else 5
    which = ordinals[0] - 1 if ordinals else _which_of(part, kind)
    if which is None or (which > 0 and not ordinals):
        return None
    names = _values(part, "MH")
    yearly = yearly_days(names[0]) if names else whole_year
    return _in_year(
        lambda year: _nth(kind, which, weekday, days) if (days := yearly(year)) else None, part, today
    )


def _yearly_mention(part: list[Node], today: date) -> Mention | None:
    yearly = yearly_days(_values(part, "MH")[0])
    which = _values(part, "xq")
    if which and not _values(part, "Yy"):
        return _fixed(which_of_years(yearly, which[0], today))
    return _in_year(yearly, part, today)


def _ago(part: list[Node], today: date) -> Mention | None:
    return _moved(part, today, -1)


def _ahead(part: list[Node], today: date) -> Mention | None:
    return _moved(part, today, 1)


def _moved(part: list[Node], today: date, sign: int) -> Mention | None:
    """Resolve "three weeks ago" and "in two days". A few are two to six."""
    count = _values(part, "dni")[-1]
    kind = _kind(part, "DWOYK") if _values(part, "DWOYK") else "D"
    if count:
        return _fixed(away(kind, sign * count, today))
    ends = [away(kind, sign * few, today) for few in (2, 6)]
    return _fixed(joined(ends[sign < 0], ends[sign > 0]))


def _rolling(part: list[Node], today: date) -> Mention | None:
    """Resolve "the last three weeks" up to today, and "the next three weeks" from it."""
    count = _values(part, "dni")[-1] or 6
    which = _values(part, "xq")
    sign = 1 if which and which[0] > 0 else -1
    end = same_day(_kind(part, "DWOYK"), sign * count, today)
    if end is None:
        return None
    return _fixed(window(*sorted((end, today.toordinal()))))


def _weekday_of_week(part: list[Node], today: date) -> Mention | None:
    week = unit_of("W", _which_of(part, "W") or 0, today)
    if not week:
        return None
    ordinal = today.toordinal() - today.weekday() + 7 * (_which_of(part, "W") or 0) + _values(part, "w")[0]
    return _fixed(window(ordinal, ordinal)) if day_at(ordinal) else None


def _weekday(part: list[Node], today: date) -> Mention | None:
    which = _values(part, "xq")
    behind = (today.weekday() - _values(part, "w")[0]) % 7
    ordinal = today.toordinal() - behind
    if which and which[0] == 0:
        ordinal = today.toordinal() - today.weekday() + _values(part, "w")[0]
    elif which and which[0] > 0:
        ordinal += 7 * which[0]
    elif which:
        ordinal += 7 * (which[0] + (behind > 0))
    day = day_at(ordinal)
    return Mention((day, day), weekly=not which) if day else None


def _unit_mention(part: list[Node], today: date) -> Mention | None:
    kind = _kind(part, "WOYK")
    which = _values(part, "xq")
    if which:
        return _fixed(unit_of(kind, which[0], today))
    return _fixed(unit_of(kind, -1 if today.weekday() < 5 else 0, today))


def _relative_day(part: list[Node], today: date) -> Mention | None:
    day = day_at(today.toordinal() + part[0].token.value)
    return _fixed((day, day)) if day else None


def _lately(part: list[Node], today: date) -> Mention | None:
    """Resolve "the other day" to the ten days before today."""
    return _fixed(window(today.toordinal() - 10, today.toordinal() - 1))


def _exact(part: list[Node], today: date) -> Mention | None:
    day = day_at(part[0].token.value)
    return _fixed((day, day)) if day else None


def _whole_years(part: list[Node], today: date) -> Mention | None:
    """Resolve a year, or a decade such as "the 1990s"."""
    last = part[-1].token
    return _fixed(joined(whole_year(last.value), whole_year(last.value + 9 * (last.kind == "C"))))


# --- Parts and ranges, over mentions


def _third(days: Days, part: int) -> Days | None:
    """Return the early (0), middle (1) or late (2) part: ten days of a month, four months of a year."""
    length = days[1].toordinal() - days[0].toordinal() + 1
    if length < 5:
        return None
    if length > 364:
        year = days[0].year
        return joined(month_of(year, 4 * part + 1), month_of(year, 4 * part + 4))
    start = days[0].toordinal()
    step = 10 if 28 <= length <= 31 else length // 3
    return window(start + part * step, days[1].toordinal() if part == 2 else start + (part + 1) * step - 1)


def _part(part: list[Node], today: date) -> Mention | None:
    """Resolve "early May" and "the end of the year"."""
    value = _values(part, "Ee")[0]
    which = value % 10
    whole = next((node.mention for node in part if node.mention), None)
    if whole is None:
        kind = {1: "O", 2: "Y"}.get(value // 10) or next(iter(node.token.kind for node in part[1:][::-1]), "")
        whole = _fixed(unit_of(kind, 0, today)) if kind in ("W", "O", "Y") else None
    if whole is None or whole.days[1].toordinal() - whole.days[0].toordinal() > 366:
        return None
    yearly = whole.yearly
    if yearly is None:
        return _fixed(_third(whole.days, which))
    return _in_year(lambda year: _third(days, which) if (days := yearly(year)) else None, [], today)


def _mentions(part: list[Node]) -> list[Mention]:
    return [node.mention for node in part if node.mention]


def _range(part: list[Node], today: date) -> Mention | None:
    """Resolve a range, whose ends share the year that one of them names."""
    start, end = _mentions(part)
    if start.yearly and end.yearly:
        later = end.yearly
        days = _from(later, start.days[0])
        earlier = start.yearly

        def yearly(year: int) -> Days | None:
            first = earlier(year)
            return joined(first, _from(later, first[0])) if first else None

        whole = joined(start.days, days)
        return Mention(whole, yearly) if whole else None
    if start.yearly:
        first = newest(start.yearly, end.days[1].year, lambda days: days[0] <= end.days[1])
        return _fixed(joined(first, end.days))
    if end.yearly:
        return _fixed(joined(start.days, _from(end.yearly, start.days[0])))
    if end.weekly and end.days[1] < start.days[0]:
        ordinal = end.days[1].toordinal() + 7
        return _fixed(joined(start.days, window(ordinal, ordinal)))
    return _fixed(joined(start.days, end.days))


def _from(yearly: Yearly, first: date) -> Days | None:
    return newest(yearly, first.year, lambda days: days[0] >= first, 1)


def _since(part: list[Node], today: date) -> Mention | None:
    mention = _mentions(part)[0]
    return Mention((mention.days[0], date.max), mention.yearly)


def _until(part: list[Node], today: date) -> Mention | None:
    mention = _mentions(part)[0]
    return Mention((date.min, mention.days[1]), mention.yearly)


def _before(part: list[Node], today: date) -> Mention | None:
    mention = _mentions(part)[0]
    day = day_at(mention.days[0].toordinal() - 1)
    return Mention((date.min, day), mention.yearly) if day else None


def _after(part: list[Node], today: date) -> Mention | None:
    mention = _mentions(part)[0]
    day = day_at(mention.days[1].toordinal() + 1)
    return Mention((day, date.max), mention.yearly) if day else None


def _beside(part: list[Node], today: date) -> Mention | None:
    """Resolve "the week before Christmas" and "the day after"."""
    days = _mentions(part)[0].days
    length = {"D": 1, "W": 7, "O": 30}[part[0].token.kind]
    if part[1].token.kind == "N":
        return _fixed(window(days[1].toordinal() + 1, days[1].toordinal() + length))
    return _fixed(window(days[0].toordinal() - length, days[0].toordinal() - 1))


RULES: dict[str, Callable[[list[Node], date], Mention | None]] = {
    "days": _calendar_days,
    "date": _calendar_days,
    "week_of": _week_of,
    "ago": _ago,
    "ahead": _ahead,
    "rolling": _rolling,
    "weekday_of_week": _weekday_of_week,
    "yearly": _yearly_mention,
    "weekday": _weekday,
    "unit": _unit_mention,
    "day_alone": _day_alone,
    "relative": _relative_day,
    "lately": _lately,
    "exact": _exact,
    "years": _whole_years,
    "part": _part,
    "range": _range,
    "since": _since,
    "until": _until,
    "before": _before,
    "after": _after,
    "beside": _beside,
}
