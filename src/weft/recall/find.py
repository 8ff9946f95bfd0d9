"""One search over everything: by words, by meaning where there is an embedder, or by both."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from weft.errors import StoreError
from weft.offload import offloaded
from weft.recall.fuse import ranked
from weft.recall.meaning import Meaning
from weft.spans import begin
from weft.store.base import Scope
from weft.store.indexes import SearchIndex
from weft.types.search import Candidate, MemorySearchResult, SearchMode, SearchOptions

_log = logging.getLogger(__name__)
_WIDER = 4
"""How many candidates of each kind are ranked for each hit that is wanted."""
_EMBEDDED_FIRST = 64
"""How many new texts a search embeds before it looks. More of them are embedded in the background."""


class Finder:
    """A search over a store: the store finds candidates, and `fuse` ranks them."""

    def __init__(self, index: SearchIndex, meaning: Meaning | None = None) -> None:
        self._index, self._meaning = index, meaning

    async def search(self, query: str, scope: Scope, options: SearchOptions) -> list[MemorySearchResult]:
        """Return the best hits in a scope, best first. Each hit names the mode of the search.

        Raises:
            StoreError: the search is by meaning, and there is no embedder, or it does not work.
        """
        with begin("search_memory", {"gen_ai.operation.name": "search_memory"}) as span:
            mode, candidates = await self.candidates(query, scope, options)
            size = sum(len(candidate.content) for candidate in candidates)
            hits = await offloaded(size, ranked, query, candidates, options.limit, mode)
            span.set({"gen_ai.memory.record.count": len(hits)})
            return hits

    async def candidates(
        self, query: str, scope: Scope, options: SearchOptions
    ) -> tuple[SearchMode, list[Candidate]]:
        """Return possible hits, and how they were found: an embedder that fails leaves the words.

        Raises:
            StoreError: the search is by meaning, and there is no embedder, or it does not work.
        """
        mode = self._mode(options.mode)
        if options.limit <= 0 or not options.content_types:
            return mode, []
        sources, candidates = options.content_types, list[Candidate]()
        if mode != SearchMode.VECTOR:
            limit = options.limit if mode == SearchMode.FTS else options.limit * _WIDER
            candidates = list(await self._index.candidates(query, scope, sources=sources, limit=limit))
        if mode != SearchMode.FTS and self._meaning is not None:
            vector = await self._meaning.vector_of(query)
            if not vector and mode == SearchMode.VECTOR:
                raise StoreError(self._meaning.failure)
            if not vector:
                return SearchMode.FTS, candidates
            await self._meaning.catch_up_before_search(_EMBEDDED_FIRST)
            candidates = await _with_meaning(self._meaning, vector, scope, options, candidates)
        return mode, candidates

    def _mode(self, mode: SearchMode) -> SearchMode:
        """Return the mode in which a search can be done here."""
        if self._meaning is not None:
            return SearchMode.HYBRID if mode == SearchMode.AUTO else mode
        if mode == SearchMode.VECTOR:
            raise StoreError("Search by meaning needs an embedder: set one, or use the mode `fts`.")
        if mode == SearchMode.HYBRID:
            _log.warning("There is no embedder, so this search is by words only (`fts`).")
        return SearchMode.FTS


async def _with_meaning(
    meaning: Meaning,
    vector: bytes,
    scope: Scope,
    options: SearchOptions,
    by_words: Sequence[Candidate],
) -> list[Candidate]:
    """Return the candidates by words and those near in meaning, each once, with both scores."""
    near = await meaning.vectors.nearest(
        meaning.embedder,
        vector,
        scope,
        sources=options.content_types,
        limit=options.limit * _WIDER,
        also=by_words,
    )
    words = {(candidate.source, candidate.id): candidate.words for candidate in by_words}
    both = [replace(one, words=words.pop((one.source, one.id), 0.0)) for one in near]
    return both + [one for one in by_words if (one.source, one.id) in words]
