"""Lines of conversations, as recall ranks them: what is known of each before its text is read."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntFlag
from functools import reduce
from operator import or_
from typing import NamedTuple

from weft.types.search import Candidate

EPISODE_SECONDS = 3600
"""A pause in a session after which a new episode begins."""


class Cue(IntFlag):
    """What a line looks like: a question, or the answer to a kind of question. Set when it is written."""

    QUESTION = 1
    TIME = 2
    NUMBER = 4
    PLACE = 8
    REASON = 16
    CAPITALIZED = 32
    """A word with a capital letter inside a sentence: the name of somebody or something."""
    CAPITALIZED_TWICE = 64
    FIRST_PERSON = 128
    """The speaker speaks of themselves."""
    FIRST_PERSON_TWICE = 256


class Line(NamedTuple):
    """One line without its text. `hits` has a bit for each term of the query that it has.

    `place`, `run` and `episode` are numbers within the session: a run is what one speaker says in a row, an
    episode what is said without a pause of an hour. `at` is in seconds since 1970, `first_day` and `last_day`
    are the days of which it speaks, since the year 1; zero if of none. `meaning` is how near its meaning is
    to that of the query, at most 1: None without an embedder, or if it is not known yet.
    """

    item: int
    session_id: str
    place: int
    run: int
    episode: int
    speaker: str
    at: float
    hits: int
    words: int
    chars: int
    cues: int
    first_day: int = 0
    last_day: int = 0
    meaning: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LineQuery:
    """What to look for: words, names of speakers, and spans of time in seconds since 1970.

    Lines that only have a name in them are not ranked higher for it, but one of them may be the answer.
    `named` are those of the words that are written like the name of somebody or something.
    """

    words: Sequence[str]
    names: Sequence[str] = ()
    named: frozenset[str] = frozenset()
    spans: Sequence[tuple[float, float]] = ()
    days: Sequence[tuple[int, int]] = ()
    """Days since the year 1 that a line may speak of, whenever it was said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineCandidates:
    """Lines that match a query or stand near one that does, and how rare the terms of the query are.

    `rarities` are in the order of the bits in `Line.hits`; a word that only one line has would be as rare as
    `rarest`. `unknown` is what the terms weigh that no line has, and `is_strange` whether one of them is
    written like a name. `average_words` is the mean length of a line.
    """

    lines: Sequence[Line]
    rarities: Sequence[float]
    rarest: float = 1.0
    unknown: float = 0.0
    is_strange: bool = False
    average_words: float = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedLine:
    """A line with its score, and what each group of reasons adds to it.

    The score orders the lines of one question. `relevance`, from 0 to 1, can be compared between questions:
    how much of the question the line and those beside it have, less if those are common words.
    """

    line: Line
    score: float
    relevance: float = 0.0
    reasons: Mapping[str, float] = field(default_factory=dict)
    text: Candidate | None = None
    """The line's text, once the store has read it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineSearch:
    """A search for lines: what to ask, once the names of the speakers are known, and how to rank.

    With an embedder, `vector` is that of the query.
    """

    ask: Callable[[Sequence[str]], LineQuery]
    rank: Callable[[LineCandidates], Sequence[RankedLine]]
    limit: int
    embedder: str = ""
    vector: bytes = b""


_WORD = re.compile(r"[^\W_]+")
_CAPITALIZED = re.compile(r"(?<=[a-zà-ÿ,;:] )[A-ZÀ-Þ][a-zà-ÿ]+")
_LOOKED_AT = 4_096
_FIRST_PERSON = Cue.FIRST_PERSON.value
_WORDS = {
    Cue.TIME: """
        yesterday today tonight tomorrow last ago next week weeks weekend month months year years day
        days recently since monday tuesday wednesday thursday friday saturday sunday morning summer
        winter jan january feb february march april may june july august september october november
        december ayer hoy mañana semana semanas mes meses año años día días hace enero febrero marzo
        abril mayo junio julio agosto septiembre octubre noviembre diciembre gestern heute morgen letzte
        letzten letzter letztes vor woche wochen monat monate monaten jahr jahre jahren tag tage tagen
        januar februar märz mai juni juli oktober dezember hier aujourd demain semaine semaines mois an
        ans année années jour jours janvier février mars avril juin juillet août septembre octobre
        novembre décembre
    """,
    Cue.NUMBER: """
        one two three four five six seven eight nine ten eleven twelve once twice couple few several
        dozen dos tres cuatro cinco seis siete ocho nueve diez zwei drei vier fünf sechs sieben acht
        neun zehn deux trois quatre cinq sept huit neuf dix
    """,
    Cue.PLACE: """
        in at near from to city town country park beach home place visited trip moved live lake street
        store shop cafe school en ciudad pueblo playa casa viaje calle nach stadt dorf strand haus reise
        straße ville plage maison voyage rue chez
    """,
    Cue.REASON: """
        because since reason why cause due motivated motivates motivation inspired inspires inspiration
        want wanted help helps porque razón weil denn damit grund parce car afin raison
    """,
    Cue.FIRST_PERSON: """
        i me my mine we us our ours yo mí mi mis nosotros nuestro nuestra ich mich mir mein meine wir
        uns unser unsere je j moi mon ma mes nous notre nos
    """,
}
_CUES: dict[str, int] = {}
for _cue, _words in _WORDS.items():
    for _word in _words.split():
        _CUES[_word] = _CUES.get(_word, 0) | _cue.value
_DIGIT, _YEAR = re.compile(r"\d"), re.compile(r"\b(?:19|20)\d\d\b")
_SIGNS = (
    (Cue.TIME, re.compile(r"[年月日週周昨]|明日|去年|前天")),
    (Cue.NUMBER, re.compile(r"[一二三四五六七八九十两]")),
    (Cue.PLACE, re.compile(r"[在住去到市国町村区駅]|から|まで")),
    (Cue.REASON, re.compile(r"因为|所以|ので|から|ため")),
    (Cue.FIRST_PERSON, re.compile(r"[我私僕俺]")),
)
"""Words of Chinese and Japanese, which have no spaces around them."""


def cues_of(text: str) -> Cue:
    """Return what a text looks like, by its beginning."""
    text = text[:_LOOKED_AT]
    known = [_CUES[word] for word in _WORD.findall(text.lower()) if word in _CUES]
    cues = Cue(reduce(or_, known, 0))
    if _DIGIT.search(text):
        cues |= Cue.NUMBER | Cue.TIME if _YEAR.search(text) else Cue.NUMBER
    for cue, pattern in () if text.isascii() else _SIGNS:
        if pattern.search(text):
            cues |= cue
    if "?" in text or "？" in text:
        cues |= Cue.QUESTION
    capitalized = len(_CAPITALIZED.findall(text))
    if capitalized:
        cues |= Cue.CAPITALIZED if capitalized == 1 else Cue.CAPITALIZED | Cue.CAPITALIZED_TWICE
    if sum(one & _FIRST_PERSON > 0 for one in known) > 1:
        cues |= Cue.FIRST_PERSON_TWICE
    return cues
