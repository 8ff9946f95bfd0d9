"""Words: which of them tell something, and how scripts without spaces are cut into pieces."""

from __future__ import annotations

import re
from collections.abc import Iterator
from unicodedata import normalize

from weft.types.lazy_pattern import lazy_pattern

STOP_WORDS = frozenset(
    """a about all am an and any are as at be been but by can could did do does for from get had has have he
    her him his how i if in into is it its just me my no not of on or our out please she should so some tell
    than that the their them then there these they this to too up us was we were what when where which who
    why will with would you your""".split()
)
MOST_TERMS = 64
"""How many terms of a query are looked for, the rarest first."""
_MOST_QUERY_CHARS = 32_768
_LOOK_BACK = 1_024
_WORD = re.compile(r"[^\W_]+", re.UNICODE)
_UNSPACED = lazy_pattern(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\U00020000-\U0003ffff]+")


def words(text: str) -> list[str]:
    """Return the words of a text in lower case; a run of a script without spaces is one word."""
    return _WORD.findall(normalize("NFC", text).lower())


def query_part(text: str) -> str:
    """Return a text as it is searched for: of a long one the start and the end, where the question stands."""
    if len(text) <= _MOST_QUERY_CHARS:
        return text
    half = _MOST_QUERY_CHARS // 2
    return f"{text[:half]} {text[-half:]}"


def slices(text: str, size: int = 32_768) -> Iterator[str]:
    """Yield a long text in slices, which begin at white space where there is some.

    One call of the regular expressions over all of a text stops every thread until it has ended.
    """
    start = 0
    while len(text) - start > size:
        end = start + size
        space = max(text.rfind(mark, end - _LOOK_BACK, end) for mark in " \n")
        end = space if space > start else end
        yield text[start:end]
        start = end
    yield text[start:]


def is_unspaced(word: str) -> bool:
    return not word.isascii() and _UNSPACED.search(word) is not None


def pairs(word: str) -> list[str]:
    """Return a run without spaces as pairs of neighboring characters, and its last one alone.

    A pair finds words of two characters, and every character begins a pair or is the last one.
    """
    return [word[at : at + 2] for at in range(len(word))]
