"""When something that repeats is due next, by the clock on the person's wall.

A time that the clock skips in spring is due an hour later that day; one that it shows twice in autumn is due
the first time. What is due on a day that a month does not have is due on the month's last day.
"""

from __future__ import annotations

from calendar import monthrange
from datetime import UTC, datetime, timedelta

from cronsim import CronSim, CronSimError

from weft.errors import ConfigError, did_you_mean

WORDS = ("once", "daily", "weekdays", "weekly", "monthly")
_DAY = timedelta(days=1)


def check_repeat(text: str) -> str:
    """Parse how something repeats, to the words that are stored: one of `WORDS`, or five fields of cron.

    Raises:
        ConfigError: it is neither.
    """
    known = " ".join(text.lower().split())
    if known in WORDS:
        return known
    if len(known.split()) != 5:
        raise ConfigError(f"Nothing repeats {text!r}: {did_you_mean(known, WORDS)}")
    try:
        CronSim(known.upper(), datetime(2026, 1, 1, tzinfo=UTC))
    except CronSimError as error:
        raise ConfigError(f"{text!r} is no time that cron knows ({error}): check its five fields.") from error
    return known.upper()


def next_due(first: datetime, repeat: str, after: datetime) -> datetime | None:
    """Return the first time after a moment, in the zone of the first time ever; None if there is none.

    Raises:
        ConfigError: nothing repeats so.
    """
    repeat = check_repeat(repeat)
    moment = after.astimezone(first.tzinfo)
    if repeat == "once":
        return first if first > after else None
    if repeat not in WORDS:
        return next(CronSim(repeat, max(moment, first - timedelta(minutes=1))), None)
    if first > after and not (repeat == "weekdays" and first.weekday() > 4):
        return first
    day = max(first, moment).date() - _DAY
    while True:
        day += _DAY
        if _falls_on(first, repeat, day.year, day.month, day.day):
            due = _on_the_wall(first, day.year, day.month, day.day)
            if due > after and due >= first:
                return due


def _falls_on(first: datetime, repeat: str, year: int, month: int, day: int) -> bool:
    if repeat == "monthly":
        return day == min(first.day, monthrange(year, month)[1])
    weekday = datetime(year, month, day, tzinfo=UTC).weekday()
    if repeat == "weekly":
        return weekday == first.weekday()
    return repeat == "daily" or weekday < 5


def _on_the_wall(first: datetime, year: int, month: int, day: int) -> datetime:
    """Return the time of day of the first time on another day; where the clock skips it, as much later."""
    wall = first.replace(year=year, month=month, day=day, fold=0)
    return wall.astimezone(UTC).astimezone(first.tzinfo)
