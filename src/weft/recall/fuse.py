"""From candidates to one ranked list: scores that can be compared, best first, with a telling excerpt."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from heapq import nsmallest

from weft.types.search import Candidate, MemorySearchResult, SearchMode
from weft.types.tokenize import STOP_WORDS, words

_EXCERPT = 160
_MEANING_SHARES = {SearchMode.FTS: 0.0, SearchMode.HYBRID: 0.4, SearchMode.VECTOR: 1.0}


def ranked(
    query: str, candidates: Sequence[Candidate], limit: int, mode: SearchMode = SearchMode.FTS
) -> list[MemorySearchResult]:
    """The best candidates of any source, each scored against the best by words and the best by meaning.

    Scores are added after both were brought to the same scale: adding ranks instead loses to words alone.
    """
    best_words = max((candidate.words for candidate in candidates), default=0.0) or 1.0
    best_meaning = max((candidate.meaning or 0.0 for candidate in candidates), default=0.0) or 1.0
    share = _MEANING_SHARES[mode]
    scored = []
    for at, candidate in enumerate(candidates):
        parts = {} if mode == SearchMode.VECTOR else {"words": candidate.words / best_words}
        if mode != SearchMode.FTS:
            parts["meaning"] = max(candidate.meaning or 0.0, 0.0) / best_meaning
        score = (1 - share) * parts.get("words", 0.0) + share * parts.get("meaning", 0.0)
        scored.append((-score, at, parts))
    return [
        _result(query, candidates[at], -score, parts, mode) for score, at, parts in nsmallest(limit, scored)
    ]


def _result(
    query: str, candidate: Candidate, score: float, parts: Mapping[str, float], mode: SearchMode
) -> MemorySearchResult:
    return MemorySearchResult(
        source=candidate.source,
        id=candidate.id,
        content=candidate.content,
        snippet=excerpt(query, candidate.content),
        score=score,
        parts=parts,
        mode=mode,
    )


def excerpt(query: str, text: str) -> str:
    """A piece of the text around the first telling word of the query."""
    wanted = [re.escape(word) for word in words(query) if word not in STOP_WORDS]
    found = re.search("|".join(wanted), text, re.IGNORECASE) if wanted and len(text) > _EXCERPT else None
    start = max(found.start() - _EXCERPT // 3, 0) if found else 0
    flat = " ".join(text[start : start + 4 * _EXCERPT].split())
    whole = len(text) <= start + 4 * _EXCERPT and len(flat) <= _EXCERPT
    return ("…" if start else "") + flat[:_EXCERPT].strip() + ("" if whole else "…")
