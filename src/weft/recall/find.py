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
from weft.store.base import Scope, SearchIndex
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
            StoreError: the search is by meaning, and there is no embedder.
        """
        with begin("search_memory", {"gen_ai.operation.name": "search_memory"}) as span:
            hits = await self._search(query, scope, options)
            span.set({"gen_ai.memory.record.count": len(hits)})
            return hits

    async def _search(self, query: str, scope: Scope, options: SearchOptions) -> list[MemorySearchResult]:
        mode = self._mode(options.mode)
        if options.limit <= 0 or not options.content_types:
            return []
        sources, candidates = options.content_types, list[Candidate]()
        if mode != SearchMode.VECTOR:
            limit = options.limit if mode == SearchMode.FTS else options.limit * _WIDER
            candidates = list(await self._index.candidates(query, scope, sources=sources, limit=limit))
        if mode != SearchMode.FTS and self._meaning is not None:
            candidates = await _with_meaning(self._meaning, query, scope, options, candidates)
        size = sum(len(candidate.content) for candidate in candidates)
        return await offloaded(size, ranked, query, candidates, options.limit, mode)

    def _mode(self, mode: SearchMode) -> SearchMode:
        """Return the mode in which a search can be done here."""
        if self._meaning is not None:
            return SearchMode.HYBRID if mode == SearchMode.AUTO else mode
        if mode == SearchMode.VECTOR:
            raise StoreError("Search by meaning needs an embedder: set one, or use the mode Fts.")
        if mode == SearchMode.HYBRID:
            _log.warning("There is no embedder, so this search is by words only (Fts).")
        return SearchMode.FTS


async def _with_meaning(
    meaning: Meaning,
    query: str,
    scope: Scope,
    options: SearchOptions,
    by_words: Sequence[Candidate],
) -> list[Candidate]:
    """Return the candidates by words and those near in meaning, each once, with both scores."""
    async for _ in meaning.catch_up(_EMBEDDED_FIRST):
        pass
    near = await meaning.vectors.nearest(
        meaning.embedder,
        await meaning.vector_of(query),
        scope,
        sources=options.content_types,
        limit=options.limit * _WIDER,
        also=by_words,
    )
    words = {(candidate.source, candidate.id): candidate.words for candidate in by_words}
    both = [replace(one, words=words.pop((one.source, one.id), 0.0)) for one in near]
    return both + [one for one in by_words if (one.source, one.id) in words]
