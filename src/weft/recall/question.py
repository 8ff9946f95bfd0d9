"""A question, as recall reads it: its words, whom and when it names, and what an answer looks like."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from difflib import SequenceMatcher

from weft.dates.find import DateSpan, dates_in
from weft.recall.empty_words import EMPTY_WORDS, SMALL_TALK, cut_unspaced, looks_japanese
from weft.types.line import Cue
from weft.types.tokenize import STOP_WORDS, is_unspaced, query_part, words

_MOST_WORDS = 256
_FEBRUARY, _LAST_YEAR = 2, 9998
_SHORTEST_NAME, _SHORTEST_MISSPELT, _LIKENESS = 3, 4, 0.66
_WORD = re.compile(r"[^\W_]+", re.UNICODE)
_INSIDE, _MOST_NAMED = re.compile(r"(?<=[\w,;:] )[^\W\d_]{3,}"), 0.5
"""Words inside of sentences, and how many of them may be names."""
_GERMAN = frozenset(
    """
        der das ein eine einen einem einer ich wir ihr sie und oder ist sind hat hast haben habe hatte hatten
        wurde wer wem wen wann wo wie warum wieso welche welcher welches mit von vom für über unter auf aus
        bei beim zu zum zur nach mir mich dir dich uns unser unsere mein meine dein deine nicht noch kostet
        kostete gibt gab erzähl
    """.split()
)
"""Words of German that other languages do not have: beside them every noun begins with a capital letter."""
_POSSESSIVE = re.compile(r"['’]s?\b")
_ANSWERS = (
    (
        Cue.TIME,
        r"\bwhen\b|\b(?:what|which) (?:year|month|day|date|time)\b|how long|cuándo|wann|quand|"
        r"什么时候|何时|いつ",
    ),
    (
        Cue.NUMBER,
        r"how (?:many|much|often|old|long)|what (?:age|number)|cuánt|wie ?viele?\b|wie oft|combien|"
        r"多少|几|いくつ|何人|何回",
    ),
    (
        Cue.PLACE,
        r"\bwhere\b|\b(?:what|which) (?:city|country|state|place|town|location|area)\b|dónde|\bwo\b|"
        r"wohin|woher|\boù\b|哪里|哪儿|どこ",
    ),
    (Cue.CAPITALIZED, r"\bwho\b|\bwhom\b|\bwhose\b|quién|\bwer\b|\bwem\b|\bwen\b|\bqui\b|谁|誰|だれ"),
    (
        Cue.REASON,
        r"\bwhy\b|reason|what (?:inspired|motivated|made|prompted)|por qué|warum|wieso|pourquoi|"
        r"为什么|なぜ|どうして",
    ),
)
_LOOKS_LIKE = tuple((cue, re.compile(pattern, re.IGNORECASE)) for cue, pattern in _ANSWERS)


_ASKS = re.compile(
    r"[?？]|\b(?:what|when|where|who|whom|whose|which|why|how|did|remind|tell|qué|quién|cuándo|dónde|cómo|cuánto|"
    r"was|wann|wo|wer|warum|wie|welche\w*|worüber|quoi|quand|où|qui|pourquoi|comment|combien|quel\w*)\b|"
    r"什么|怎么|哪|谁|多少|几|何|どこ|いつ|誰|どう|だっけ",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The significant words of a query, the speakers and times it names, and how its answer may look."""

    words: tuple[str, ...]
    names: tuple[str, ...] = ()
    """The words by which it names speakers."""
    speakers: frozenset[str] = frozenset()
    spans: tuple[DateSpan, ...] = ()
    """Days that are asked for. What is to come was not said on its day, but may have been spoken of."""
    today: date = date.max
    named: frozenset[str] = frozenset()
    """The significant words that are written like the name of somebody or something else."""
    answer: Cue = field(default=Cue(0))
    asks: bool = False
    """Whether it is a question: only then a time alone is a reason to recall something."""


def read_question(query: str, speakers: Sequence[str], now: datetime) -> Question:
    """Read a query. `speakers` are the names of those whose lines can be found."""
    part = query_part(query)
    spans = dates_in(part, now)
    said = part
    for span in spans:
        said = said.replace(span.text, " ")
    named, names, significant = set[str](), dict[str, None](), dict[str, None]()
    for name in speakers:
        if len(name) > 1 and is_unspaced(name) and name in said:
            named.add(name)
            names[name] = None
            said = said.replace(name, " ")
    for match in list(_WORD.finditer(_POSSESSIVE.sub("", said)))[:_MOST_WORDS]:
        word = match.group()
        if name := _speaker(word, speakers):
            named.add(name)
            names |= dict.fromkeys(words(word))
        else:
            significant |= dict.fromkeys(words(word))
    answer = Cue(0)
    for cue, pattern in _LOOKS_LIKE:
        if pattern.search(part):
            answer |= cue
    return Question(
        words=tuple(_telling(significant, is_japanese=looks_japanese(part))),
        names=tuple(names),
        speakers=frozenset(named),
        spans=_with_next_year(spans),
        today=now.date(),
        named=_named(said),
        answer=answer,
        asks=is_question(part),
    )


def _named(text: str) -> frozenset[str]:
    """Return the words inside of sentences that begin with a capital letter, where that makes a name.

    In German every noun has one, and in a title every word.
    """
    inside = [(match[0], match[0][0].isupper()) for match in _INSIDE.finditer(text)]
    names = [word for word, is_capital in inside if is_capital and not word.isupper()]
    all_words = [match[0].lower() for match in _WORD.finditer(text)]
    if len(names) > _MOST_NAMED * len(inside) or not _GERMAN.isdisjoint(all_words):
        return frozenset()
    return frozenset(part for name in names for part in words(name))


def is_question(query: str) -> bool:
    return _ASKS.search(query_part(query)) is not None


def asked_days(query: str, now: datetime) -> tuple[DateSpan, ...]:
    """Return the days that a question asks for; none if it is no question."""
    part = query_part(query)
    return dates_in(part, now) if is_question(part) else ()


def has_words(query: str) -> bool:
    """Check whether a query says anything but a greeting."""
    part = query_part(query)
    return bool(_telling(words(part), is_japanese=looks_japanese(part)))


def _telling(said: Iterable[str], *, is_japanese: bool) -> list[str]:
    """Return the words that tell something. A message of greetings and thanks has none."""
    telling = list[str]()
    for word in said:
        if is_unspaced(word):
            telling += cut_unspaced(word, is_japanese=is_japanese)
        elif word not in STOP_WORDS and word not in EMPTY_WORDS:
            telling.append(word)
    return [] if all(word in SMALL_TALK for word in telling) else list(dict.fromkeys(telling))


def _with_next_year(spans: Sequence[DateSpan]) -> tuple[DateSpan, ...]:
    """Add the next year's days to those without a year: "October 1st" may be the one to come."""
    yearly = (span for span in spans if span.is_recurring and span.last.year < _LAST_YEAR)
    return (
        *spans,
        *(replace(span, first=_year_on(span.first), last=_year_on(span.last)) for span in yearly),
    )


def _year_on(day: date) -> date:
    return day.replace(year=day.year + 1, day=min(day.day, 28) if day.month == _FEBRUARY else day.day)


def _speaker(word: str, speakers: Sequence[str]) -> str:
    """Return the speaker whom a word names: by a part of the name, or by one that is nearly spelt so."""
    lower = word.lower()
    for name in speakers:
        for part in name.lower().split():
            if lower == part or (len(lower) >= _SHORTEST_NAME and part.startswith(lower)):
                return name
    if word[0].isupper() and len(word) >= _SHORTEST_MISSPELT:
        for name in speakers:
            if any(_is_misspelt(lower, part) for part in name.lower().split()):
                return name
    return ""


def _is_misspelt(word: str, name: str) -> bool:
    return word[0] == name[0] and SequenceMatcher(None, word, name).ratio() >= _LIKENESS
