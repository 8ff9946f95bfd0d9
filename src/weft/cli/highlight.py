"""Words of a query, marked in a text."""

from __future__ import annotations

import re

from rich.text import Text

from weft.types.tokenize import MOST_TERMS, STOP_WORDS, is_unspaced, query_part, words

_STYLE = "bold yellow"
_SHORT, _ENDING = 4, 3
"""How many letters of a word must be there, and how many at its end may be others: painted, painting."""


def highlighted(text: str, query: str) -> Text:
    """Return a text in which the words of a query stand out, also with another ending."""
    marked = Text(text)
    patterns = [_pattern(word) for word in dict.fromkeys(words(query_part(query))) if word not in STOP_WORDS]
    if patterns:
        marked.highlight_regex(re.compile("|".join(patterns[:MOST_TERMS]), re.IGNORECASE), _STYLE)
    return marked


def _pattern(word: str) -> str:
    if is_unspaced(word):
        return re.escape(word)
    stem = word[: max(_SHORT, len(word) - _ENDING)]
    ending = r"[^\W_]*" if len(word) >= _SHORT else ""
    return rf"(?<![^\W_]){re.escape(stem)}{ending}(?![^\W_])"
