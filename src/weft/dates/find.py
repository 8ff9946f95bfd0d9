"""The days that a text speaks of, in English, Spanish, German, French, Chinese and Japanese.

A text becomes tokens, each with a kind of one letter (see `words.py`). Three patterns over these letters
then find dates, parts of them ("early May"), and ranges. Every repetition in them is bounded, so that no text
takes long.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from datetime import date, datetime
from functools import cache

from weft.dates.rules import RULES, Node
from weft.dates.tokens import Form, Token, han_tokens, latin_tokens
from weft.dates.words import TRIGGERS
from weft.types.lazy_pattern import lazy_pattern

_MOST_CHARACTERS = 4096
_WORD = re.compile(r"[^\W\d_]+")
_NUMERIC = re.compile(
    r"(?<!\d)(?:19|20|21)\d\d(?!\d)|\d[./]\d\d?[./]|\b(?:un |l['’])an\b"
    r"|\b(?:on|since|until|before|after|el|le|del?|au?) \d\d?/\d\d?\b"
    r"|\b(?:on the|am|le|el|día) \d\d?(?:st|nd|rd|th|\.)?(?!\d)"
)
_MAY_BE_NUMERIC, _LONGEST_BEFORE = re.compile(r"\d|\ban\b"), len("before ")
_HAN = lazy_pattern(r"\d{1,4}\s?[年月日号號]|[\u3040-\u30ff\u3400-\u9fff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class DateSpan:
    """Days that a text speaks of, first and last inclusive.

    A side that the text leaves open ("since May") is `date.min` or `date.max`. `is_recurring` marks a month,
    season, holiday or day without a year: it is then the newest one that has begun by `now`.
    """

    first: date
    last: date
    text: str
    is_recurring: bool = False


_WHICH = "[xq]"
_UNIT = "[DWOYK]"
_COUNT = "~?(?:i?[dn]|i)"
_LINK = "[o-]{0,2}"
_IN = "[opPI]"
# A year behind a month or holiday, and a year that is not one of ours, which makes the whole no date.
_ANY_YEAR = "(?:(?:Yo?)?y|[xq]o?Y|Yo?q)"
_YEAR = f"(?:,?[opPI-]{{0,3}}{_ANY_YEAR}(?!u))"
_NO_YEAR = "(?![,o]{0,2}Z)"


def _grammar(rules: dict[str, str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?P<{name}>{pattern})" for name, pattern in rules.items()))


_DAY_ALONE: dict[Form, str] = {
    "month first": "Por(?=$|[|,])",
    "day first": "oDd(?=$|[|,])|P[r](?=$|[.|,])|od(?=$|[|,])",
    "han": f"(?<![MZy])d(?!{_UNIT}|[AJ-])",
}
"""A day of the month without the month: "on the 11th", "el día 11", "am 11.", "le 11"."""


# Patterns are compiled at their first use: together they take 10 ms.
@cache
def _dates(form: Form) -> re.Pattern[str]:
    """Compile the patterns of dates. Only some languages put the day behind the month."""
    month_day = "(?!)" if form == "day first" else f"M{_LINK}[dr](?!{_UNIT})"
    last_week = f"(?:{_WHICH}o?W|Wo?q)"
    ahead_of_year = "[pPIfstbvNB>&Eo-]"
    return _grammar(
        {
            "days": f"(?:(?:Bo{{0,2}}[dr]o?&|[dr]o?[>tc-]){_LINK}[dr]{_LINK}M|{month_day}o?[>tc-]o?[dr])"
            f"{_YEAR}?{_NO_YEAR}V?",
            "week_of": f"[rxq]o?[WDKw]{_IN}{{1,3}}(?:[MH]{_YEAR}?{_NO_YEAR}|{_ANY_YEAR})"
            f"|[WDKw]o?q{_IN}{{1,3}}[MH]{_YEAR}?|(?:{_ANY_YEAR}o?)?Mo?[rx][Ww]",
            "date": f"(?<!Z)(?:{_WHICH}?w,?o?)?(?:[dr]{_LINK}M{_YEAR}?|{month_day}{_YEAR}?"
            f"|{_ANY_YEAR}[opPI,]{{0,2}}(?:M(?:o?[dr](?!{_UNIT}))?|H)){_NO_YEAR}",
            "ago": f"{_COUNT}{_UNIT}A|[Gv]o?{_COUNT}{_UNIT}|(?<!M)dA",
            "rolling": f"{_WHICH}o?~?[dn]{_UNIT}|[dn]q{_UNIT}|sG?o?{_COUNT}{_UNIT}",
            "ahead": f"[IF]o?{_COUNT}{_UNIT}|{_COUNT}{_UNIT}J",
            "weekday_of_week": f"w,?{_IN}{{0,3}}{last_week}|{last_week}[opPI,]{{0,2}}w",
            "yearly": f"(?<!Z)(?:[MH]{_YEAR}|{_WHICH}o?[MH]|[MH]o?q|[MH]){_NO_YEAR}",
            "weekday": f"{_WHICH}o?w|wo?q|w",
            "unit": f"{_WHICH}o?[WOYK]|[WOYK]o?q|[pPI]o?K",
            "day_alone": _DAY_ALONE[form],
            "relative": "z",
            "lately": "L",
            "exact": "X",
            "years": f"C|Yo?y|(?<={ahead_of_year})y(?!u)|y(?=-y)|^y$",
        }
    )


@cache
def _parts() -> re.Pattern[str]:
    return _grammar({"part": "Eo{0,2}S|Eo{0,2}[WOY]|Se|e"})


@cache
def _ranges() -> re.Pattern[str]:
    return _grammar(
        {
            "range": "(?:Bo{0,2}S,?o?&o{0,2}S|S&o?S=|f?o?S,?o?(?:[>t-]|c>?)o{0,2}SV?)",
            "since": "so{0,2}S|f?o?Sc",
            "until": "to{0,2}S|SV",
            "beside": "[DWO][bvN]o{0,2}S",
            "before": "[bv]o{0,2}S|SA",
            "after": "No{0,2}S|SJ",
        }
    )


def dates_in(text: str, now: datetime) -> tuple[DateSpan, ...]:
    """Return the days that `text` speaks of, in its order, as understood at `now`.

    Only the first 4,096 characters are read. Dates that do not exist are ignored.
    """
    text = text[:_MOST_CHARACTERS]
    if text.isascii():
        if not _may_speak_of_days(text):
            return ()
        return tuple(span for _, span in _spans(text, *latin_tokens(text), now))
    text = unicodedata.normalize("NFC", text)
    spans: list[tuple[int, DateSpan]] = []
    if _HAN.search(text):
        spans += _spans(text, han_tokens(text), "han", now)
        text = _HAN.sub(lambda match: "|" * len(match[0]), text)
    if _may_speak_of_days(text):
        spans += _spans(text, *latin_tokens(text), now)
    return tuple(span for _, span in sorted(spans, key=lambda item: item[0]))


def _may_speak_of_days(text: str) -> bool:
    if not TRIGGERS.isdisjoint(_WORD.findall(text.lower())):
        return True
    near = _MAY_BE_NUMERIC.search(text)
    return near is not None and _NUMERIC.search(text, max(0, near.start() - _LONGEST_BEFORE)) is not None


def _spans(text: str, tokens: list[Token], form: Form, now: datetime) -> list[tuple[int, DateSpan]]:
    nodes: list[Node] = [Node(token, None) for token in tokens]
    for pattern in (_dates(form), _parts(), _ranges()):
        nodes = _reduce(nodes, pattern, now.date())
    return [
        (
            node.token.start,
            DateSpan(
                first=node.mention.days[0],
                last=node.mention.days[1],
                text=text[node.token.start : node.token.end],
                is_recurring=node.mention.yearly is not None,
            ),
        )
        for node in nodes
        if node.mention
    ]


def _reduce(nodes: list[Node], pattern: re.Pattern[str], today: date) -> list[Node]:
    """Replace what `pattern` matches with one node each.

    A date that does not exist is dropped. Parts and ranges that no rule accepts are left as they are.
    """
    kinds = "".join(node.token.kind for node in nodes)
    reduced: list[Node] = []
    position = 0
    for match in pattern.finditer(kinds):
        part = nodes[match.start() : match.end()]
        mention = RULES[match.lastgroup or ""](part, today)
        if mention is None and any(node.mention for node in part):
            continue
        reduced += nodes[position : match.start()]
        token = Token("S" if mention else ".", 0, part[0].token.start, part[-1].token.end)
        reduced.append(Node(token, mention))
        position = match.end()
    return reduced + nodes[position:]
