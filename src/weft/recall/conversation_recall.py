"""Recall: the few lines of a person's conversations that bear on a message, and are not in view."""

from __future__ import annotations

from collections.abc import Sequence

from weft.offload import offloaded
from weft.recall.rank import Index
from weft.spans import begin
from weft.store.base import Scope, SearchIndex
from weft.types.escape import without_fenced
from weft.types.search import Candidate, Recalled, SearchContentType
from weft.types.section import OUTSIDE

_SPEAKERS = {"user": "User", "assistant": "Assistant"}
_MANY = 8
"""How many candidates are ranked for each line that is shown."""
_RANKED_CHARS = 20_000
"""How much of a line is ranked; far less is shown."""


class ConversationRecall:
    """Recall over a store: the store finds candidates, and the best of them are chosen here."""

    def __init__(self, index: SearchIndex) -> None:
        self._index = index

    async def recall(
        self, query: str, *, sender: str, session_id: str, limit: int, view_from: int = 0
    ) -> Sequence[Recalled]:
        scope = Scope(owner=sender, without_session=session_id, view_from=view_from)
        with begin("search_memory", {"gen_ai.operation.name": "search_memory"}) as span:
            candidates = await self._index.lines(query, scope, limit=limit * _MANY)
            size = sum(len(candidate.content) for candidate in candidates)
            hits = await offloaded(size, _best, query, candidates, limit)
            span.set({"gen_ai.memory.record.count": len(hits)})
            return hits


def _best(query: str, candidates: Sequence[Candidate], limit: int) -> list[Recalled]:
    """Return the lines that share the rarest words with the query, best first; ties newest first."""
    lines = [candidate for candidate in candidates if candidate.source == SearchContentType.MESSAGES]
    scores = Index([line.content[:_RANKED_CHARS] for line in lines]).relevance(query)
    order = sorted(range(len(lines)), key=lambda at: (-scores[at], -at))
    return [
        Recalled(
            text=lines[at].content,
            id=lines[at].id,
            speaker=_SPEAKERS.get(lines[at].speaker, lines[at].speaker),
            origin=_origin(lines[at]),
            timestamp=lines[at].at,
            score=scores[at],
        )
        for at in order[:limit]
    ]


def _origin(line: Candidate) -> str:
    """Return who wrote a line. A file that came with a message stands in a fence, and is an import.

    So is what the assistant said from text of strangers.
    """
    if line.outside and line.origin not in OUTSIDE:
        return "import"
    has_file = line.origin == "user" and without_fenced(line.content) != line.content
    return "import" if has_file else line.origin or "user"
