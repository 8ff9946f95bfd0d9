"""From candidates to one ranked list: scores that can be compared, best first, with a telling excerpt."""

from __future__ import annotations

from collections.abc import Sequence

from weft.types.records import Candidate, MemorySearchResult
from weft.types.words import STOP_WORDS, words

_EXCERPT = 160
_MEANING_SHARE = 0.4


def ranked(query: str, candidates: Sequence[Candidate], limit: int) -> list[MemorySearchResult]:
    """The best candidates of any source, each scored against the best by words and the best by meaning.

    Scores are added after both were brought to the same scale: adding ranks instead loses to words alone.
    """
    best_words = max((candidate.words for candidate in candidates), default=0.0) or 1.0
    best_meaning = max((candidate.meaning or 0.0 for candidate in candidates), default=0.0) or 1.0
    results = []
    for candidate in candidates:
        parts = {"words": candidate.words / best_words}
        score = parts["words"]
        if candidate.meaning is not None:
            parts["meaning"] = candidate.meaning / best_meaning
            score = (1 - _MEANING_SHARE) * parts["words"] + _MEANING_SHARE * parts["meaning"]
        results.append(
            MemorySearchResult(
                source=candidate.source,
                id=candidate.id,
                content=candidate.content,
                snippet=excerpt(query, candidate.content),
                score=score,
                parts=parts,
            )
        )
    return sorted(results, key=lambda result: -result.score)[:limit]


def excerpt(query: str, text: str) -> str:
    """A piece of the text around the first telling word of the query."""
    flat = " ".join(text.split())
    if len(flat) <= _EXCERPT:
        return flat
    low = flat.lower()
    places = [at for word in words(query) if word not in STOP_WORDS and (at := low.find(word)) >= 0]
    start = max(min(places, default=0) - _EXCERPT // 3, 0)
    end = min(start + _EXCERPT, len(flat))
    return ("…" if start else "") + flat[start:end].strip() + ("…" if end < len(flat) else "")
