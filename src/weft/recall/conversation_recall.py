"""Recall: the few lines of a person's conversations that bear on a message, and are not in view."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

from weft.recall.line_rank import rank
from weft.recall.meaning import Meaning
from weft.recall.question import Question, has_words, read_question
from weft.spans import begin
from weft.store.base import LineIndex, Scope
from weft.types.escape import without_fenced
from weft.types.line import LineCandidates, LineQuery, LineSearch, RankedLine
from weft.types.search import Candidate, Recalled
from weft.types.section import OUTSIDE

_SPEAKERS = {"user": "User", "assistant": "Assistant"}
_SPARE = 20
"""How many more lines are ranked than are wanted: some may be in view."""
_EPOCH = date(1970, 1, 1)
_TOLD_LATER = timedelta(days=14)
"""How long after a day people still speak of it."""


class ConversationRecall:
    """Recall over a store: the store finds candidates, and the best of them are chosen here."""

    def __init__(self, index: LineIndex, meaning: Meaning | None = None) -> None:
        self._index, self._meaning = index, meaning

    async def recall(
        self,
        query: str,
        *,
        sender: str,
        session_id: str,
        limit: int,
        view_from: int = 0,
        now: datetime | None = None,
    ) -> Sequence[Recalled]:
        scope = Scope(owner=sender, without_session=session_id, view_from=view_from)
        asked = _Search(query, now or datetime.now(UTC), limit)
        with begin("search_memory", {"gen_ai.operation.name": "search_memory"}) as span:
            search = LineSearch(ask=asked.ask, rank=asked.rank, limit=limit)
            if self._meaning is not None and has_words(query):
                vector = await self._meaning.vector_of(query)
                search = replace(search, embedder=self._meaning.embedder, vector=vector)
            hits = await self._index.search(search, scope)
            span.set({"gen_ai.memory.record.count": len(hits)})
            return [_recalled(hit, hit.text) for hit in hits if hit.text is not None]


class _Search:
    """One search: the question is read once the names of the speakers are known."""

    def __init__(self, query: str, now: datetime, limit: int) -> None:
        self._query, self._now, self._limit = query, now, limit
        self._question = Question(words=())

    def ask(self, speakers: Sequence[str]) -> LineQuery:
        self._question = read_question(self._query, speakers, self._now)
        return line_query(self._question)

    def rank(self, candidates: LineCandidates) -> Sequence[RankedLine]:
        return rank(self._question, candidates, self._limit + _SPARE)


def line_query(question: Question) -> LineQuery:
    """Return what the store looks for. What happened on a day may be told two weeks later."""
    spans = [(_seconds(span.first), _seconds(span.last, later=_TOLD_LATER)) for span in question.spans]
    days = [(span.first.toordinal(), span.last.toordinal()) for span in question.spans]
    return LineQuery(words=question.words, names=question.names, named=question.named, spans=spans, days=days)


def _seconds(day: date, later: timedelta = timedelta()) -> float:
    """Return when a day begins, or `later` after that."""
    return (day - _EPOCH + later).total_seconds()


def _recalled(hit: RankedLine, text: Candidate) -> Recalled:
    return Recalled(
        text=text.content,
        id=text.id,
        speaker=hit.line.speaker or _SPEAKERS.get(text.speaker, text.speaker),
        origin=_origin(text),
        timestamp=text.at,
        score=hit.score,
        relevance=hit.relevance,
        session_id=text.session_id,
        place=hit.line.place,
        episode=hit.line.episode,
        reasons=hit.reasons,
    )


def _origin(line: Candidate) -> str:
    """Return who wrote a line. A file that came with a message stands in a fence, and is an import.

    So is what the assistant said from text of strangers.
    """
    if line.outside and line.origin not in OUTSIDE:
        return "import"
    has_file = line.origin == "user" and without_fenced(line.content) != line.content
    return "import" if has_file else line.origin or "user"
