"""The tokens of dates in a text: words by the table of its language, and numbers by their form."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date
from typing import Literal, NamedTuple

from weft.dates.words import (
    HAN_UNITS,
    HAN_WHICH,
    HAN_WORDS,
    HEADS,
    LEXICONS,
    MARKERS,
    han_number,
    han_token,
)
from weft.types.lazy_pattern import lazy_pattern


class Token(NamedTuple):
    """A kind (see `words.py`), its value, and where it stands in the text."""

    kind: str
    value: int
    start: int
    end: int


Form = Literal["month first", "day first", "han"]
"""How dates are written: May 11, 11 May, or 5月11日."""
_CHUNK = lazy_pattern(r"\d[^\W_]*(?:[.,:/-]\d[^\W_]*)*|[^\W\d_]+")
_YEAR_FIRST = lazy_pattern(r"(\d{4})([-/.])(\d{1,2})\2(\d{1,2})(?:T.*)?")
_YEAR_LAST = lazy_pattern(r"(\d{1,2})([-/.])(\d{1,2})\2(\d{4}|\d\d)")
_YEAR_MONTH = lazy_pattern(r"(\d{4})-(\d\d)")
_MONTH_YEAR = lazy_pattern(r"(\d\d?)/(\d{4})")
_ORDINAL = lazy_pattern(r"(\d{1,2})(?:st|nd|rd|th|er|re|ro|do|e|ème|º|ª|te|ten|ter)")
_PAIR = lazy_pattern(r"(\d{1,4})-(\d{1,4})")
_DECADE = lazy_pattern(r"(\d{3}0)s")
_DAY_MONTH = lazy_pattern(r"(\d{1,2})\.(\d{1,2})")
_SLASHED = lazy_pattern(r"(\d{1,2})/(\d{1,2})")
_BREAKS = lazy_pattern(r"[^\s'’\-–—,.]|\n")
_BEFORE_NUMBER = "_+$€£¥#@.:/\\"
_AFTER_NUMBER = "%$€£¥°"


def _is_year(number: int) -> bool:
    return 1900 <= number <= 2100


def _exact(year: int, month: int, day: int) -> list[tuple[str, int]]:
    """Return a token for a date in numbers. A date that does not exist is a word without a meaning."""
    if not _is_year(year):
        return [(".", 0)]
    try:
        return [("X", date(year, month, day).toordinal())]
    except ValueError:
        return [(".", 0)]


def _plain_number(chunk: str) -> tuple[str, int]:
    number = int(chunk)
    if len(chunk) == 4:
        return ("y", number) if _is_year(number) else ("Z", number)
    return ("d", number) if 1 <= number <= 31 and len(chunk) <= 2 else ("n", number)


def _year_last(match: re.Match[str], language: str) -> list[tuple[str, int]]:
    """Read 7/5/2023: the month is first in English, unless that is no month or a dot says otherwise."""
    one, separator, two, digits = match.groups()
    if len(digits) == 2 and not (separator == "/" or (separator == "." and language == "de")):
        return [(".", 0)]
    year = int(digits) if len(digits) == 4 else int(digits) + (2000 if int(digits) < 70 else 1900)
    month_first = language == "en" and separator != "."
    day, month = (int(two), int(one)) if month_first else (int(one), int(two))
    if month > 12 and day <= 12:
        day, month = month, day
    return _exact(year, month, day)


def _number(chunk: str, language: str) -> list[tuple[str, int]]:
    """Return what a chunk that begins with a digit means."""
    if chunk.isdecimal() and len(chunk) <= 4:
        return [_plain_number(chunk)]
    if match := _YEAR_FIRST.fullmatch(chunk):
        return _exact(int(match[1]), int(match[3]), int(match[4]))
    if match := _YEAR_LAST.fullmatch(chunk):
        return _year_last(match, language)
    if (match := _ORDINAL.fullmatch(chunk)) and 1 <= int(match[1]) <= 31:
        return [("r", int(match[1]))]
    if (match := _DECADE.fullmatch(chunk)) and _is_year(int(match[1])):
        return [("C", int(match[1]))]
    return _two_numbers(chunk)


def _two_numbers(chunk: str) -> list[tuple[str, int]]:
    if (match := _YEAR_MONTH.fullmatch(chunk)) and _is_year(int(match[1])) and 1 <= int(match[2]) <= 12:
        return [("M", int(match[2])), ("y", int(match[1]))]
    if (match := _MONTH_YEAR.fullmatch(chunk)) and _is_year(int(match[2])) and 1 <= int(match[1]) <= 12:
        return [("M", int(match[1])), ("y", int(match[2]))]
    if match := _PAIR.fullmatch(chunk):
        one, two = _plain_number(match[1]), _plain_number(match[2])
        if one[0] == two[0] and one[0] in "dy":
            return [one, ("-", 0), two]
    return [(".", 0)]


def _language(words: Iterable[str]) -> str:
    """Return the language with the most words of its own; by its words for dates if there are none."""
    present = set(words)
    return max(
        LEXICONS, key=lambda name: (len(present & MARKERS[name]), len(present & LEXICONS[name].keys()))
    )


def latin_tokens(text: str) -> tuple[list[Token], Form]:
    """Return the tokens of a text in Latin letters, and how its language writes dates."""
    chunks = list(_CHUNK.finditer(text))
    words = [chunk[0].lower() for chunk in chunks]
    language = _language(words)
    tokens: list[Token] = []
    position = end = 0
    while position < len(chunks):
        start = chunks[position].start()
        _add_gap(tokens, text[end:start], language)
        size, meaning = _meaning(text, chunks, words, position, language)
        if meaning == [(".", 0)] and tokens and tokens[-1].kind in "PIstbvNfo>":
            meaning = _short_date(text, chunks[position], language) or meaning
        end = chunks[position + size - 1].end()
        tokens += [Token(kind, value, start, end) for kind, value in meaning]
        position += size
    return _decided(tokens, text, language), "month first" if language == "en" else "day first"


def _short_date(text: str, chunk: re.Match[str], language: str) -> list[tuple[str, int]]:
    """Read "am 3.5." or "el 3/5" as a day and a month, and "on 5/3" as a month and a day."""
    if language == "de":
        match = _DAY_MONTH.fullmatch(chunk[0])
        if not match or text[chunk.end() : chunk.end() + 1] != ".":
            return []
    elif not (match := _SLASHED.fullmatch(chunk[0])):
        return []
    day, month = int(match[1]), int(match[2])
    if language == "en":
        day, month = month, day
    return [("d", day), ("M", month)] if 1 <= month <= 12 and 1 <= day <= 31 else []


def _meaning(
    text: str, chunks: list[re.Match[str]], words: list[str], position: int, language: str
) -> tuple[int, list[tuple[str, int]]]:
    """Return how many chunks form the next word or phrase, and its meaning."""
    chunk, word = chunks[position], words[position]
    if word[0].isdecimal():
        before, after = text[chunk.start() - 1 : chunk.start()], text[chunk.end() : chunk.end() + 1]
        if before and (before in _BEFORE_NUMBER or before.isalnum()):
            return 1, [(".", 0)]
        if after and after in _AFTER_NUMBER:
            return 1, [(".", 0)]
        return 1, _number(chunk[0], language)
    lexicon = LEXICONS[language]
    if word in HEADS[language]:
        for size in (5, 4, 3, 2):
            phrase = lexicon.get(" ".join(words[position : position + size]))
            if phrase and position + size <= len(chunks):
                gap = text[chunk.end() : chunks[position + size - 1].start()]
                if not any(character in "!?;:,.\n" for character in gap):
                    return size, list(phrase)
    return 1, list(lexicon.get(word, ((".", 0),)))


def _add_gap(tokens: list[Token], gap: str, language: str) -> None:
    """Add a token for what stands between two words: the end of a sentence, a comma or a dash."""
    if not tokens or gap == " ":
        return
    last = tokens[-1]
    kind = ""
    if _BREAKS.search(gap):
        kind = "|"
    elif "." in gap:
        if language == "de" and last.kind == "d" and gap[0] == ".":
            tokens[-1] = last._replace(kind="r")
        elif last.kind not in "lg":
            kind = "|"
    elif "," in gap:
        kind = ","
    elif "–" in gap or "—" in gap or " - " in gap or ("-" in gap and last.kind in "MmldrywH"):
        kind = "-"
    if kind:
        tokens.append(Token(kind, 0, last.end, last.end + len(gap)))


# --- Words that are dates only beside other words

_PRONOUNS = frozenset("i you he she it we they who".split())
_DECIDES = {"m": "M", "l": "M", "g": "w", "h": "H", "j": "H", "k": "H"}


def _decided(tokens: list[Token], text: str, language: str) -> list[Token]:
    """Decide for each word that may be a date ("may", "sun", "fall", "été") whether it is one here."""
    for position, token in enumerate(tokens):
        if token.kind in _DECIDES:
            near = _Near(tokens, position, text)
            is_date = near.is_month() if token.kind in "ml" else near.is_other()
            tokens[position] = token._replace(kind=_DECIDES[token.kind] if is_date else ".")
        elif language == "de" and text[token.start : token.end] == "Morgen" and not _begins(tokens, position):
            # A capital within a sentence makes it the noun: the morning.
            tokens[position] = token._replace(kind=".")
        elif token.kind == "*" and position + 1 < len(tokens):
            tokens[position + 1] = tokens[position + 1]._replace(kind=".")
    return tokens


def _begins(tokens: list[Token], position: int) -> bool:
    return position == 0 or tokens[position - 1].kind == "|"


class _Near:
    """A word that may be a date, and the kinds of the tokens around it."""

    def __init__(self, tokens: list[Token], position: int, text: str) -> None:
        kinds = [token.kind for token in tokens[max(0, position - 2) : position + 4]]
        here = min(position, 2)
        self.kind = tokens[position].kind
        self.word = text[tokens[position].start : tokens[position].end]
        self.two_before = kinds[here - 2] if here > 1 else "|"
        self.before = kinds[here - 1] if here else "|"
        self.after, self.two_after = [*kinds[here + 1 :], "|", "|"][:2]
        last = tokens[position - 1] if position else tokens[position]
        previous = text[last.start : last.end]
        # "Theresa May" is a person, and "You May Like" a title: unlike "Was May cold?".
        self.follows_name = (
            last.kind == "." and previous[0].isupper() and previous.lower() not in MARKERS["en"]
        )
        self.follows_name |= previous.lower() in _PRONOUNS

    def _has_year(self) -> bool:
        return self.after == "y" or (self.after in "o,-" and self.two_after in "yx")

    def is_month(self) -> bool:
        """Return whether a word such as "may" is a month: by a day, year, preposition or capital."""
        if self._has_year() or (self.after in "dr" and self.two_after not in "uDWOYK"):
            return True
        if self.before in "dr" or (self.before in "o-" and self.two_before in "drE"):
            return True
        if (
            self.word == "mars"
            or self.before in "IpsEBf"
            or (self.before in "&>t-" and self.two_before in "Mm")
        ):
            return True
        if self.kind == "l" or not self.word.istitle():
            return False
        if self.before == "|":
            return self.after in "|,"
        return not self.follows_name

    def is_other(self) -> bool:
        """Return whether a word such as "sun", "fall" or "été" is a weekday or a season."""
        if self.kind == "g":
            return self.word.istitle() and (self.before in "xPI" or self.after in ",Mmldr")
        if (
            self._has_year()
            or self.before in "IpsxqEyY"
            or (self.before == "o" and self.two_before in "IpPsEY")
        ):
            return True
        if self.kind == "k":
            return self.before in "oP"
        return self.kind == "j" and (self.after != "." or self.before in "P&>bNt")


# --- Chinese and Japanese


def han_tokens(text: str) -> list[Token]:
    """Return the tokens of the Chinese and Japanese dates in a text."""
    tokens: list[Token] = []
    end = 0
    for match in han_token().finditer(text):
        if text[end : match.start()].strip(" \u3000"):
            tokens.append(Token("|", 0, end, match.start()))
        end = match.end()
        tokens += [Token(kind, value, match.start(), end) for kind, value in _han_meaning(match)]
    return _decided(tokens, text, "")


def _han_meaning(match: re.Match[str]) -> list[tuple[str, int]]:
    if match["unit"]:
        return _han_quantity(han_number(match["number"]), match["unit"], is_ordinal=bool(match["nth"]))
    if match["zh"]:
        weekday = [("w", "一二三四五六日天".index(match["zh"]) % 7 if match["zh"] != "天" else 6)]
        if not match["which"]:
            return weekday
        which = sum(HAN_WHICH.get(character, 0) for character in match["which"])
        return [("x", which), ("W", 0), *weekday]
    if match["ja"]:
        return [("w", "月火水木金土日".index(match["ja"]))]
    return list(HAN_WORDS[match["word"]]) if match["word"] else [(",", 0)]


def _han_quantity(number: int, unit: str, *, is_ordinal: bool) -> list[tuple[str, int]]:
    """Read a number with its unit, which is a day, month or year of the calendar, or a length of time."""
    if number < 0:
        return [("|", 0)]
    count = "r" if is_ordinal else "n"
    if unit in HAN_UNITS:
        return [(count, number), (HAN_UNITS[unit], 0)]
    if unit == "月":
        return [("M", number)] if 1 <= number <= 12 else [("|", 0)]
    if unit == "年":
        if number >= 1000:
            return [("Y", 0), ("y", number)] if _is_year(number) else [("Z", number)]
        return [(count, number), ("Y", 0)]
    if len(unit) > 1:
        return [(count, number), ("O", 0)]
    return [("d", number)] if 1 <= number <= 31 else [("n", number), ("D", 0)]
