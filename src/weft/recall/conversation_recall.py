"""Recall: the few lines of a person's other conversations that bear on a message."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from weft.recall.rank import relevance
from weft.spans import begin
from weft.types.search import Candidate, Recalled, SearchContentType

_SPEAKERS = {"user": "User", "assistant": "Assistant"}
_MANY = 8
"""How many candidates are looked at for each line that is shown."""


class FindsLines(Protocol):
    """The part of a store that recall needs."""

    async def lines(
        self, query: str, *, sender: str, without_session: str, limit: int
    ) -> list[Candidate]: ...


class Past:
    """Candidates come from the store; which of them are shown is decided here."""

    def __init__(self, store: FindsLines) -> None:
        self._store = store

    async def recall(self, query: str, *, sender: str, session_id: str, limit: int) -> Sequence[Recalled]:
        with begin("search_memory", {"gen_ai.operation.name": "search_memory"}) as span:
            many = limit * _MANY
            found = await self._store.lines(query, sender=sender, without_session=session_id, limit=many)
            lines = best(query, found, limit)
            span.set({"gen_ai.memory.record.count": len(lines)})
            return lines


def best(query: str, found: Sequence[Candidate], limit: int) -> list[Recalled]:
    """The lines that share the most telling words with the query, best first; ties newest first."""
    lines = [candidate for candidate in found if candidate.source == SearchContentType.MESSAGES]
    scores = relevance(query, [candidate.content for candidate in lines])
    order = sorted(range(len(lines)), key=lambda at: (-scores[at], -at))
    return [
        Recalled(
            text=lines[at].content,
            speaker=_SPEAKERS.get(lines[at].speaker, lines[at].speaker),
            timestamp=lines[at].at,
            score=scores[at],
        )
        for at in order[:limit]
    ]
