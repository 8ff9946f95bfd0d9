"""The search that people use: messages ranked as recall ranks them, beside blocks, notes and facts.

Every hit says why it was found. Blocks, notes and facts are scored by words and meaning, and messages by the
same; the ranking of recall then orders the messages among themselves, so that a date, a speaker's name, or
what was said beside a line counts too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from heapq import nlargest

from weft.offload import offloaded
from weft.recall.conversation_recall import line_query
from weft.recall.find import Finder
from weft.recall.fuse import excerpt, ranked
from weft.recall.line_rank import LOOKED_AT, rank
from weft.recall.meaning import Meaning
from weft.recall.question import Question, has_words, read_question
from weft.recall.search_filter import read_period, read_speaker
from weft.spans import begin
from weft.store.base import LineIndex, Scope
from weft.store.indexes import SearchIndex
from weft.store.people import People
from weft.types.line import LineCandidates, LineQuery, LineSearch, RankedLine
from weft.types.search import (
    Candidate,
    FactType,
    MemorySearchResult,
    NearLine,
    SearchContentType,
    SearchFilter,
    SearchMode,
    SearchOptions,
    SearchQuery,
)

MOST_HITS, MOST_AROUND = 200, 20
_MESSAGES, _FACTS = SearchContentType.MESSAGES, FactType.FACTS
_RELEVANT = 0.3
"""How relevant a line is at least that has no word of the query: others only stand beside a hit."""
_WORDS_SHARE, _SPARE = 0.3, 20
_UNRELATED = 0.2
"""How near in meaning a text without a word of the query is at least."""


class Searcher:
    """A search over everything in a store."""

    def __init__(
        self,
        index: SearchIndex,
        lines: LineIndex,
        people: People,
        finder: Finder,
        meaning: Meaning | None = None,
    ) -> None:
        self._index, self._lines, self._people = index, lines, people
        self._finder, self._meaning = finder, meaning

    async def read_filter(
        self, scope: Scope, *, since: str = "", until: str = "", who: str = "", now: datetime | None = None
    ) -> SearchFilter:
        """Read the filters of a search; an empty one filters nothing.

        Raises:
            ConfigError: a day or a name is not known.
        """
        period = read_period(since, until, now or datetime.now(UTC))
        if not who.strip():
            return period
        speaker = await read_speaker(who, scope, self._index, self._people)
        return replace(speaker, since=period.since, until=period.until)

    async def search(
        self, query: SearchQuery, scope: Scope, now: datetime | None = None
    ) -> list[MemorySearchResult]:
        """Return the best hits in a scope, best first.

        Raises:
            StoreError: the search is by meaning, and there is no embedder, or it does not work.
        """
        limit = min(query.limit, MOST_HITS)
        if limit <= 0 or not query.sources:
            return []
        with begin("search_memory", {"gen_ai.operation.name": "search_memory"}) as span:
            hits = await self._scored(query, scope, limit)
            if _MESSAGES in query.sources and query.mode != SearchMode.VECTOR:
                lines = await self._ranked_lines(query, scope, limit, now or datetime.now(UTC))
                size = sum(len(line.text.content) for line in lines if line.text is not None)
                hits = await offloaded(size, _merged, query.text, hits, lines)
            best = nlargest(limit, hits, key=lambda hit: hit.score)
            span.set({"gen_ai.memory.record.count": len(best)})
        return await self._with_lines_around(best, min(query.around, MOST_AROUND))

    async def _scored(self, query: SearchQuery, scope: Scope, limit: int) -> list[MemorySearchResult]:
        """Return hits by words and meaning, on one scale."""
        indexed = tuple(one for one in query.sources if isinstance(one, SearchContentType))
        options = SearchOptions(mode=query.mode, content_types=indexed, limit=2 * limit)
        mode, candidates = await self._finder.candidates(query.text, scope, options)
        candidates = [one for one in candidates if one.words or (one.meaning or 0.0) >= _UNRELATED]
        if _FACTS in query.sources and mode != SearchMode.VECTOR:
            candidates += await self._index.fact_candidates(query.text, scope, limit=limit)
        size = sum(len(candidate.content) for candidate in candidates)
        return await offloaded(size, ranked, query.text, candidates, len(candidates), mode)

    async def _ranked_lines(
        self, query: SearchQuery, scope: Scope, limit: int, now: datetime
    ) -> Sequence[RankedLine]:
        """Return messages as recall ranks them."""
        lines = _LineRanking(query.text, now, scope.only)
        search = LineSearch(ask=lines.ask, rank=lines.rank, limit=min(3 * limit + _SPARE, LOOKED_AT))
        if self._meaning is not None and query.mode != SearchMode.FTS and has_words(query.text):
            vector = await self._meaning.vector_of(query.text)
            search = replace(search, embedder=self._meaning.embedder, vector=vector)
        return await self._lines.search(search, scope)

    async def _with_lines_around(
        self, hits: Sequence[MemorySearchResult], count: int
    ) -> list[MemorySearchResult]:
        if count <= 0:
            return list(hits)
        messages = [hit.id for hit in hits if hit.source == _MESSAGES]
        around = await self._index.around(messages, count)
        return [
            replace(hit, around=tuple(_near(line, hit) for line in around.get(hit.id, ())))
            if hit.source == _MESSAGES
            else hit
            for hit in hits
        ]


class _LineRanking:
    """The ranking of one search. The question is read once the names of the speakers are known."""

    def __init__(self, query: str, now: datetime, only: SearchFilter) -> None:
        self._query, self._now, self._only = query, now, only
        self._question = Question(words=())

    def ask(self, speakers: Sequence[str]) -> LineQuery:
        self._question = read_question(self._query, speakers, self._now)
        return line_query(self._question)

    def rank(self, candidates: LineCandidates) -> Sequence[RankedLine]:
        count = len(candidates.lines) if self._only.is_set else LOOKED_AT
        return [line for line in rank(self._question, candidates, count) if self._is_hit(line)]

    def _is_hit(self, ranked_line: RankedLine) -> bool:
        """Return whether a line is more than a neighbor of a hit, and passes the filter."""
        at, reasons, only = ranked_line.line.at, ranked_line.reasons, self._only
        if (only.since is not None and at < only.since) or (only.until is not None and at >= only.until):
            return False
        if reasons.get("words", 0.0) > 0 or ranked_line.relevance >= _RELEVANT:
            return True
        return not self._question.words and reasons.get("speaker", 0.0) > 0


def _merged(
    query: str, hits: Sequence[MemorySearchResult], lines: Sequence[RankedLine]
) -> list[MemorySearchResult]:
    """Order the messages among the hits as `lines` are, and add those lines that are no hits yet.

    The best line gets the score of the best message, and the others their share of it. Somebody who searches
    wants to see their own words, so the words of a line count for more than in recall.
    """
    messages = {hit.id: hit for hit in hits if hit.source == _MESSAGES}
    best_line = max((line.score for line in lines), default=0.0)
    best_message = max((hit.score for hit in messages.values()), default=0.0)
    best = max(best_message, max((line.relevance for line in lines), default=0.0))
    ordered = list[MemorySearchResult]()
    for line in lines:
        if line.text is not None:
            share = max(line.score, 0.0) / best_line if best_line > 0 else line.relevance
            hit = messages.pop(line.text.id, None) or _hit(query, line.text)
            words = hit.score / best_message if best_message else share
            score = best * ((1 - _WORDS_SHARE) * share + _WORDS_SHARE * words)
            ordered.append(replace(hit, score=score, reasons=line.reasons))
    return [*ordered, *messages.values(), *(hit for hit in hits if hit.source != _MESSAGES)]


def _hit(query: str, text: Candidate) -> MemorySearchResult:
    return MemorySearchResult(
        source=text.source,
        id=text.id,
        content=text.content,
        snippet=excerpt(query, text.content),
        score=0.0,
        at=text.at,
        session_id=text.session_id,
        place=text.place,
        speaker=text.name or text.speaker,
        owner=text.owner,
    )


def _near(line: Candidate, hit: MemorySearchResult) -> NearLine:
    return NearLine(
        id=line.id,
        content=line.content,
        speaker=line.name or line.speaker,
        at=line.at,
        is_hit=line.id == hit.id,
    )
