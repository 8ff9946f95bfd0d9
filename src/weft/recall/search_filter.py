"""The filters of a search, read from words: since when, until when, and who said it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timedelta

from weft.dates.find import dates_in
from weft.errors import ConfigError, did_you_mean
from weft.store.base import Scope
from weft.store.indexes import SearchIndex
from weft.store.people import People
from weft.types.person import OWNER_NAME
from weft.types.search import FactType, SearchContentType, SearchFilter

KINDS: Mapping[str, SearchContentType | FactType] = {
    "messages": SearchContentType.MESSAGES,
    "blocks": SearchContentType.BLOCKS,
    "archive": SearchContentType.ARCHIVAL,
    "facts": FactType.FACTS,
}
_ROLES = {"user": "user", "me": "user", "assistant": "assistant"}
_LONGEST, _MOST_NAMES = 100, 20


def read_kinds(kinds: str, *, who: str = "") -> tuple[SearchContentType | FactType, ...]:
    """Read the kinds of things to search in, with commas between them; without any, all of them.

    Raises:
        ConfigError: there is no such kind, or a speaker is asked for where nobody speaks.
    """
    names = [name.strip().lower() for name in kinds.split(",") if name.strip()]
    for name in names:
        if name not in KINDS:
            raise ConfigError(f"There is nothing called {name!r} to search in: {did_you_mean(name, KINDS)}")
    if who.strip() and names and "messages" not in names:
        raise ConfigError("Only messages have a speaker: search in messages too, or name no speaker.")
    return tuple(KINDS[name] for name in dict.fromkeys(names or KINDS))


def read_period(since: str, until: str, now: datetime) -> SearchFilter:
    """Read two days or times: `2026-05-01`, `2026-05-01T12:00`, or words such as "last week".

    A day is one in the zone of `now`, and the last day is included.

    Raises:
        ConfigError: one of them is no day, or the first comes after the last.
    """
    first = _moment(since, now, is_end=False) if since.strip() else None
    last = _moment(until, now, is_end=True) if until.strip() else None
    if first is not None and last is not None and first >= last:
        raise ConfigError(f"Nothing lies since {since!r} and until {until!r}: the first must be the earlier.")
    return SearchFilter(since=first, until=last)


def _moment(text: str, now: datetime, *, is_end: bool) -> float:
    text = text.strip()[:_LONGEST]
    try:
        return _exact(text, now, is_end=is_end)
    except (ValueError, OverflowError):
        pass
    spans = dates_in(text, now) or dates_in(text.title(), now)  # "may" alone is rather a verb
    if len(spans) == 1:
        day = spans[0].last if is_end else spans[0].first
        if date.min < day < date.max:
            return _begin(day + timedelta(days=int(is_end)), now)
    raise ConfigError(
        f"{text!r} is no day that can be searched {'until' if is_end else 'since'}: write a date such as "
        "2026-05-01, or words such as 'last week', 'May' or '3 months ago'."
    )


def _exact(text: str, now: datetime, *, is_end: bool) -> float:
    """Return the moment of an ISO date or time. Raises ValueError if it is none."""
    if len(text) > len("2026-05-01"):
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=now.tzinfo)).timestamp()
    return _begin(date.fromisoformat(text) + timedelta(days=int(is_end)), now)


def _begin(day: date, now: datetime) -> float:
    return datetime.combine(day, time(), now.tzinfo).timestamp()


async def read_speaker(who: str, scope: Scope, index: SearchIndex, people: People) -> SearchFilter:
    """Find whom a name means: a role, somebody who speaks in a conversation, or a person who writes here.

    Only the operator, who searches everything, can name a person.

    Raises:
        ConfigError: nobody has that name.
    """
    name = who.strip().casefold()
    if role := _ROLES.get(name):
        is_narrow = name == "me" and scope.everyone
        return SearchFilter(role=role, senders=tuple(await people.senders(OWNER_NAME)) if is_narrow else None)
    speakers = await index.speakers(scope)
    if speaker := _speaker(name, speakers):
        return SearchFilter(speaker=speaker)
    known = await people.list() if scope.everyone else []
    for person in known:
        if name in (person.name.casefold(), *map(str.casefold, person.senders)):
            return SearchFilter(role="user", senders=tuple(await people.senders(person.name)))
    names = [*_ROLES, *speakers, *(person.name for person in known)]
    raise ConfigError(f"Nobody called {who.strip()[:_LONGEST]!r} speaks here: {_nearest(who, names)}")


def _speaker(name: str, speakers: Sequence[str]) -> str:
    """Return the speaker of a name, or the only one with that name among several of theirs."""
    exact = [speaker for speaker in speakers if speaker.casefold() == name]
    partial = [speaker for speaker in speakers if name in speaker.casefold().split()]
    return exact[0] if exact else partial[0] if len(partial) == 1 else ""


def _nearest(who: str, names: Sequence[str]) -> str:
    """End a sentence about an unknown name; of many names not all are listed."""
    end = did_you_mean(who.strip()[:_LONGEST], dict.fromkeys(names))
    is_list = not end.startswith("did you mean")
    return did_you_mean("", names[:_MOST_NAMES]) if is_list and len(names) > _MOST_NAMES else end
