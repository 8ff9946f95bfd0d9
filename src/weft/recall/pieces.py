"""Ranking of a file's entries that are too many to index: in two passes, piece by piece.

It ranks as `rank.Index` does, but holds only one piece and the best entries at a time.
"""

from __future__ import annotations

import math
import re
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from heapq import heappush, heapreplace, nsmallest

from weft.recall.rank import terms
from weft.types.tokenize import MOST_TERMS, query_part

Pieces = Callable[[], Iterable[Sequence[str]]]
"""Returns the entries anew, in pieces."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BestEntries:
    """The most relevant entries, best first, and how many there were with how many characters in all."""

    entries: tuple[str, ...]
    count: int
    chars: int


def best_entries(pieces: Pieces, query: str, limit: int) -> BestEntries:
    """Return the entries that bear on a query, ties and the rest newest first."""
    wanted = frozenset(terms(query_part(query)))
    may_match = _filter(wanted)
    count = chars = 0
    places: Counter[str] = Counter()
    newest: deque[tuple[int, str]] = deque(maxlen=limit)
    for piece in pieces():
        for entry in piece:
            count, chars = count + 1, chars + len(entry)
            newest.append((count, entry))
            if may_match(entry):
                places.update(wanted.intersection(terms(entry)))
    rarest = nsmallest(MOST_TERMS, places.items(), key=lambda item: item[1])
    rarity = {term: math.log(1 + (count - number + 0.5) / (number + 0.5)) for term, number in rarest}
    best = _best(pieces, limit, rarity, average=chars / count) if rarity and limit else []
    chosen = {at for _, at, _ in best}
    rest = [(0.0, at, entry) for at, entry in newest if at not in chosen]
    ranked = sorted((*best, *rest), key=lambda one: (-one[0], -one[1]))[:limit]
    return BestEntries(entries=tuple(entry for _, _, entry in ranked), count=count, chars=chars)


def _filter(wanted: Collection[str]) -> Callable[[str], object]:
    """Return a quick look at whether an entry may have one of the terms; many are not worth one."""
    if len(wanted) > MOST_TERMS:
        return bool
    # A stem may lack the last letters of a word's form: `city` of `cities`.
    starts = "|".join(sorted({re.escape(term[: max(len(term) - 1, 1)]) for term in wanted}))
    return re.compile(starts, re.IGNORECASE).search if starts else lambda entry: False


def _best(
    pieces: Pieces,
    limit: int,
    rarity: dict[str, float],
    *,
    average: float,
) -> list[tuple[float, int, str]]:
    """Return the entries with the highest scores, as (score, position, entry)."""
    heap: list[tuple[float, int, str]] = []
    may_match = _filter(rarity)
    at = 0
    for piece in pieces():
        for entry in piece:
            at += 1
            if not may_match(entry):
                continue
            score = sum(rarity.get(term, 0.0) for term in frozenset(terms(entry)))
            score /= 0.7 + 0.3 * len(entry) / average
            if score and len(heap) < limit:
                heappush(heap, (score, at, entry))
            elif score and (score, at) > heap[0][:2]:
                heapreplace(heap, (score, at, entry))
    return heap
