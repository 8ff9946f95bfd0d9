"""Ranking of search candidates: one list with comparable scores, best first, each with an excerpt."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from heapq import nsmallest

from weft.types.search import Candidate, MemorySearchResult, SearchMode
from weft.types.tokenize import MOST_TERMS, STOP_WORDS, query_part, words

_EXCERPT = 160
_SEARCHED, _SLICE, _LONGEST_WORD = 1_000_000, 32_768, 64
_MEANING_SHARES = {SearchMode.FTS: 0.0, SearchMode.HYBRID: 0.4, SearchMode.VECTOR: 1.0}


def ranked(
    query: str, candidates: Sequence[Candidate], limit: int, mode: SearchMode = SearchMode.FTS
) -> list[MemorySearchResult]:
    """Rank the candidates of all sources, each scored against the best by words and the best by meaning.

    Both scores are brought to the same scale and added. Adding ranks instead is worse than words alone.
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
        MemorySearchResult(
            source=candidates[at].source,
            id=candidates[at].id,
            content=candidates[at].content,
            snippet=excerpt(query, candidates[at].content),
            score=-score,
            parts=parts,
            mode=mode,
            at=candidates[at].at,
            session_id=candidates[at].session_id,
            place=candidates[at].place,
            speaker=candidates[at].name or candidates[at].speaker,
            label=candidates[at].label,
            owner=candidates[at].owner,
            ended_at=candidates[at].ended_at,
            reasons=_reasons(parts, share),
        )
        for score, at, parts in nsmallest(limit, scored)
    ]


def _reasons(parts: Mapping[str, float], share: float) -> dict[str, float]:
    """Return what words and meaning add to a score."""
    reasons = {
        "words": (1 - share) * parts.get("words", 0.0),
        "similarity": share * parts.get("meaning", 0.0),
    }
    return {name: value for name, value in reasons.items() if value}


def excerpt(query: str, text: str, chars: int = _EXCERPT) -> str:
    """Cut an excerpt of the text around the first word of the query that is not a stop word."""
    hit = _first_hit(query, text) if len(text) > chars else None
    start = max(hit.start() - chars // 3, 0) if hit else 0
    flat = " ".join(text[start : start + 4 * chars].split())
    whole = len(text) <= start + 4 * chars and len(flat) <= chars
    return ("…" if start else "") + flat[:chars].strip() + ("" if whole else "…")


def _first_hit(query: str, text: str) -> re.Match[str] | None:
    """Find the first word of the query in a text, in slices: one search of it all stops all threads."""
    wanted = [word for word in dict.fromkeys(words(query_part(query))) if word not in STOP_WORDS]
    if not wanted:
        return None
    pattern = re.compile("|".join(map(re.escape, wanted[:MOST_TERMS])), re.IGNORECASE)
    starts = range(0, min(len(text), _SEARCHED), _SLICE)
    hits = (pattern.search(text, start, start + _SLICE + _LONGEST_WORD) for start in starts)
    return next((hit for hit in hits if hit), None)
