"""Lines of conversations, as recall ranks them: what is known of each before its text is read."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntFlag

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


@dataclass(frozen=True, slots=True)
class Line:
    """One line without its text. `hits` has a bit for each term of the query that it has.

    `place`, `run` and `episode` are numbers within the session: a run is what one speaker says in a row, an
    episode what is said without a pause of an hour. `at` is in seconds since 1970, `first_day` and `last_day`
    are the days of which it speaks, since the year 1; zero if of none.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class LineQuery:
    """What to look for: words, names of speakers, and spans of time in seconds since 1970.

    Lines that only have a name in them are not ranked higher for it, but one of them may be the answer.
    """

    words: Sequence[str]
    names: Sequence[str] = ()
    spans: Sequence[tuple[float, float]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LineCandidates:
    """Lines that match a query or stand near one that does, and how rare the terms of the query are.

    `rarities` are in the order of the bits in `Line.hits`; a word that only one line has would be as rare as
    `rarest`. `unknown` is the number of terms that no line has. `average_words` is the mean length of a line.
    """

    lines: Sequence[Line]
    rarities: Sequence[float]
    rarest: float = 1.0
    unknown: int = 0
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
    """A search for lines: what to ask, once the names of the speakers are known, and how to rank."""

    ask: Callable[[Sequence[str]], LineQuery]
    rank: Callable[[LineCandidates], Sequence[RankedLine]]
    limit: int


_MONTH = (
    r"jan(?:uary|uar|vier)?|feb(?:ruary|ruar)?|février|enero|febrero|märz|mars|marzo|april|abril|avril|june?|juin|"
    r"juni[o]?|july?|juillet|juli[o]?|august|agosto|août|sep(?:tember|tembre|tiembre)|o[ck]t(?:ober|obre|ubre)|"
    r"nov(?:ember|embre|iembre)|de[cz](?:ember|iembre)|décembre"
)
_TIME = re.compile(
    rf"\b(?:yesterday|today|tonight|tomorrow|last|ago|next|weeks?|weekend|months?|years?|days?|recently|since|"
    rf"(?:mon|tues|wednes|thurs|fri|satur|sun)day|morning|summer|winter|(?:19|20)\d\d|ayer|hoy|mañana|semanas?|"
    rf"meses|mes|años?|días?|hace|gestern|heute|morgen|letzte\w*|vor|wochen?|monate?n?|jahre?n?|tage?n?|"
    rf"hier|demain|semaines?|mois|ans?|années?|jours?|{_MONTH})\b|[年月日週周]|昨|明日|去年|先週|前天",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|once|twice|couple|few|several|"
    r"dozen|dos|tres|cuatro|cinco|seis|siete|ocho|nueve|diez|zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|"
    r"deux|trois|quatre|cinq|sept|huit|neuf|dix)\b|[一二三四五六七八九十两]",
    re.IGNORECASE,
)
_PLACE = re.compile(
    r"\b(?:in|at|near|from|to|city|town|country|park|beach|home|place|visited|trip|moved|live|lake|street|store|"
    r"shop|cafe|school|en|ciudad|pueblo|playa|casa|viaje|calle|nach|stadt|dorf|strand|haus|reise|straße|"
    r"ville|plage|maison|voyage|rue|chez)\b|[在住去到市国町村区駅]|から|まで",
    re.IGNORECASE,
)
_REASON = re.compile(
    r"\b(?:because|since|so that|reason|why|cause|due|motivat\w*|inspir\w*|want(?:ed)? to|helps?|porque|"
    r"para que|razón|weil|denn|damit|grund|parce|car|afin|raison)\b|因为|所以|ので|から|ため",
    re.IGNORECASE,
)
_CAPITALIZED = re.compile(r"(?<=[a-zà-ÿ,;:] )[A-ZÀ-Þ][a-zà-ÿ]+")
_LOOKED_AT = 4_096
_PATTERNS = ((Cue.TIME, _TIME), (Cue.NUMBER, _NUMBER), (Cue.PLACE, _PLACE), (Cue.REASON, _REASON))


def cues_of(text: str) -> Cue:
    """Return what a text looks like, by its beginning."""
    text = text[:_LOOKED_AT]
    cues = Cue.QUESTION if "?" in text or "？" in text else Cue(0)
    for cue, pattern in _PATTERNS:
        if pattern.search(text):
            cues |= cue
    capitalized = len(_CAPITALIZED.findall(text))
    if capitalized:
        cues |= Cue.CAPITALIZED
    if capitalized > 1:
        cues |= Cue.CAPITALIZED_TWICE
    return cues
