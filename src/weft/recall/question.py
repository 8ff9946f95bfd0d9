"""A question, as recall reads it: its words, whom and when it names, and what an answer looks like."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from difflib import SequenceMatcher

from weft.dates.find import DateSpan, dates_in
from weft.types.line import Cue
from weft.types.tokenize import STOP_WORDS, query_part, words

_MOST_WORDS = 256
_SHORTEST_NAME, _SHORTEST_MISSPELT, _LIKENESS = 3, 4, 0.66
_EMPTY_WORDS = frozenset(
    """after also because before being between both done during each ever going goes go got having hers
    kind kinds long made make many may mention mentioned mentions might mine more most much must
    name named names often one only other over own said same say says shall since sort such thing
    things think those time type types under until very way went while whom whose yours ve ll re d s
    t m don didn doesn isn wasn como cuando cuál cuáles cuándo cuánto cuántos cómo de del donde
    dónde el ella en era es esa ese eso esta este fue ha había hay la las lo los mi mis para por
    porque que qué quién se ser si sin sobre su sus también te tiene tu un una y yo aber als am auf
    aus bei bin das dass dem den der dich dir doch du ein eine einem einen einer er es für habe
    haben hat hatte ich ihr im ist kann mein meine mich mir mit nach nicht oder sein sich sie sind
    und vom von vor wann warum welche welcher welches wem wen wer wie wieso wir wo worüber zu zum
    zur über au aux avec c ce ces cette comment dans de des du elle est et eu il ils j je l la le
    les leur lui ma mes moi mon ne nos notre nous où par pas pour pourquoi qu quand que quel quelle
    quelles quels qui sa ses son sont sur ta tes toi ton tu un une vos votre vous y à été""".split()
)
_SMALL_TALK = frozenset(
    """afternoon awesome back bye cool cute evening fine glad good great haha happy hello hey hi hmm hope
    later lol lovely luck morning nice night nope ok okay oh ooh right sorry sounds sure talk thank
    thanks today tomorrow totally welcome wonderful wow yeah yep yes yesterday adiós bien buenas
    bueno buenos claro días genial gracias hola mañana noche noches perdón sí tardes vale abend
    bitte danke gut guten hallo ja klar morgen nacht nein schön tag tschüss bien bonjour bonne
    bonsoir ça d'accord désolé merci non nuit oui salut super""".split()
)
"""Words of greetings and thanks: nothing is recalled for a message that has no other words."""
_WORD = re.compile(r"[^\W_]+", re.UNICODE)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The significant words of a query, the speakers and times it names, and how its answer may look."""

    words: tuple[str, ...]
    names: tuple[str, ...] = ()
    """The words by which it names speakers."""
    speakers: frozenset[str] = frozenset()
    spans: tuple[DateSpan, ...] = ()
    answer: Cue = field(default=Cue(0))


def read_question(query: str, speakers: Sequence[str], now: datetime) -> Question:
    """Read a query. `speakers` are the names of those whose lines can be found."""
    part = query_part(query)
    spans = dates_in(part, now)
    said = part
    for span in spans:
        said = said.replace(span.text, " ")
    named, names, significant = set[str](), dict[str, None](), dict[str, None]()
    for match in list(_WORD.finditer(_POSSESSIVE.sub("", said)))[:_MOST_WORDS]:
        word = match.group()
        if name := _speaker(word, speakers):
            named.add(name)
            names |= dict.fromkeys(words(word))
        else:
            significant |= dict.fromkeys(words(word))
    telling = _telling(significant)
    answer = Cue(0)
    for cue, pattern in _LOOKS_LIKE:
        if pattern.search(part):
            answer |= cue
    return Question(
        words=tuple(telling), names=tuple(names), speakers=frozenset(named), spans=spans, answer=answer
    )


def has_words(query: str) -> bool:
    """Check whether a query says anything but a greeting."""
    return bool(_telling(words(query_part(query))))


def _telling(said: Iterable[str]) -> list[str]:
    """Return the words that tell something. A message of greetings and thanks has none."""
    telling = [word for word in said if word not in STOP_WORDS and word not in _EMPTY_WORDS]
    return [] if all(word in _SMALL_TALK for word in telling) else telling


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
