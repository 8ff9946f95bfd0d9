"""Why a search found something, in words, and the words of a query in a text. Pure."""

from __future__ import annotations

import re

from weft.types.search import MemorySearchResult
from weft.types.tokenize import MOST_TERMS, STOP_WORDS, is_unspaced, query_part, words

_MATTERS = 0.1
"""The smallest share of a score that is shown as a reason."""
_NAMES = {"episode": "conversation"}
_SHORT, _ENDING = 4, 3
"""How many letters of a word must be there, and how many at its end may be others: painted, painting."""


def explained(hit: MemorySearchResult) -> str:
    """Return the reasons of a hit as shares of what counted for it; small ones are left out."""
    counted = {_NAMES.get(name, name): value for name, value in hit.reasons.items() if value > 0}
    total = sum(counted.values())
    shares = sorted(((value / total, name) for name, value in counted.items()), reverse=True)
    return ", ".join(f"{name} {share:.1f}" for share, name in shares if share >= _MATTERS)


def query_pattern(query: str) -> re.Pattern[str] | None:
    """Return what finds the words of a query in a text, also with another ending."""
    names = dict.fromkeys(words(query_part(query)))
    patterns = [_pattern(word) for word in names if word not in STOP_WORDS][:MOST_TERMS]
    return re.compile("|".join(patterns), re.IGNORECASE) if patterns else None


def _pattern(word: str) -> str:
    if is_unspaced(word):
        return re.escape(word)
    stem = word[: max(_SHORT, len(word) - _ENDING)]
    ending = r"[^\W_]*" if len(word) >= _SHORT else ""
    return rf"(?<![^\W_]){re.escape(stem)}{ending}(?![^\W_])"
