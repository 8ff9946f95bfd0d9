"""Keyword ranking of texts for a query, in the manner of BM25.

Rare words count more than common ones, long texts do not win by length, and a word matches its plural
and its other endings. Scripts without spaces are compared by pairs of characters.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from heapq import nsmallest

from weft.types.tokenize import MOST_TERMS, STOP_WORDS, is_unspaced, pairs, query_part, words

_ENDINGS = ("ingly", "edly", "ings", "ies", "ing", "ed", "es", "ly", "s")
_SHORT = 2048


class Index:
    """An index of texts, to rank them for many queries."""

    def __init__(self, texts: Sequence[str]) -> None:
        bags = [terms(text) for text in texts]
        average = sum(map(len, bags)) / max(len(bags), 1) or 1.0
        self._lengths = [0.7 + 0.3 * len(bag) / average for bag in bags]
        self._places: dict[str, list[int]] = {}
        for at, bag in enumerate(bags):
            for term in frozenset(bag):
                self._places.setdefault(term, []).append(at)

    def relevance(self, query: str) -> list[float]:
        """Return one score for each text; zero means that it shares no word with the query but stop words."""
        number = len(self._lengths)
        scores = [0.0] * number
        shared = frozenset(terms(query_part(query))) & self._places.keys()
        for term in nsmallest(MOST_TERMS, shared, key=lambda term: len(self._places[term])):
            places = self._places[term]
            rarity = math.log(1 + (number - len(places) + 0.5) / (len(places) + 0.5))
            for at in places:
                scores[at] += rarity / self._lengths[at]
        return scores


def terms(text: str) -> tuple[str, ...]:
    """Return the words of a text without stop words and endings. Those of short texts are cached."""
    return _cached_terms(text) if len(text) <= _SHORT else _terms(text)


def _terms(text: str) -> tuple[str, ...]:
    stems: list[str] = []
    for word in words(text):
        if is_unspaced(word):
            stems += pairs(word)
        elif word not in STOP_WORDS:
            stems.append(_stem(word))
    return tuple(stems)


_cached_terms = lru_cache(maxsize=16_384)(_terms)


def _stem(word: str) -> str:
    """Remove the ending of a word, so that its forms are equal: cities and city, planning and plan."""
    for ending in _ENDINGS:
        stem = word.removesuffix(ending)
        if stem != word and len(stem) >= 3:
            break
    else:
        return word.rstrip("e") if len(word) > 3 else word
    if ending == "s" and stem.endswith("s"):
        return word
    if ending == "ies":
        return stem + "y"
    if ending in ("ing", "ings", "ed") and stem[-1] == stem[-2] and stem[-1] not in "lsz":
        stem = stem[:-1]
    return stem.rstrip("e")
