"""One search over everything: by words, by meaning where there is an embedder, or by both."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from weft.errors import StoreError
from weft.recall.embed import Embedder, packed
from weft.recall.fuse import ranked
from weft.spans import begin
from weft.store.base import Scope, SearchIndex, VectorIndex
from weft.types.search import Candidate, MemorySearchResult, SearchMode, SearchOptions

_log = logging.getLogger(__name__)
_BATCH = 256
_WIDER = 4
"""How many of each kind are found for each one that is wanted, before they are ranked together."""


class Finder:
    """Candidates come from the store, their order from `fuse`."""

    def __init__(
        self, index: SearchIndex, vectors: VectorIndex | None = None, embedder: Embedder | None = None
    ) -> None:
        self._index = index
        self._meaning = None if vectors is None or embedder is None else (vectors, embedder)

    async def search(self, query: str, scope: Scope, options: SearchOptions) -> list[MemorySearchResult]:
        """The best of what may be found, best first; each hit says which mode found it.

        Raises:
            StoreError: it was asked for by meaning, and there is no embedder.
        """
        with begin("search_memory", {"gen_ai.operation.name": "search_memory"}) as span:
            found = await self._search(query, scope, options)
            span.set({"gen_ai.memory.record.count": len(found)})
            return found

    async def _search(self, query: str, scope: Scope, options: SearchOptions) -> list[MemorySearchResult]:
        mode = self._mode(options.mode)
        if options.limit <= 0 or not options.content_types:
            return []
        sources, found = options.content_types, list[Candidate]()
        if mode != SearchMode.VECTOR:
            wide = options.limit if mode == SearchMode.FTS else options.limit * _WIDER
            found = list(await self._index.candidates(query, scope, sources=sources, limit=wide))
        if mode != SearchMode.FTS and self._meaning is not None:
            found = await _with_meaning(*self._meaning, query, scope, options, found)
        return ranked(query, found, options.limit, mode)

    async def catch_up(self) -> int:
        """Give every text a vector that has none yet; how many there were."""
        return 0 if self._meaning is None else await _embed_missing(*self._meaning)

    def _mode(self, asked: SearchMode) -> SearchMode:
        """How the search is really done."""
        if self._meaning is not None:
            return SearchMode.HYBRID if asked == SearchMode.AUTO else asked
        if asked == SearchMode.VECTOR:
            raise StoreError("Search by meaning needs an embedder: set one, or use the mode Fts.")
        if asked == SearchMode.HYBRID:
            _log.warning("There is no embedder, so this search is by words only (Fts).")
        return SearchMode.FTS


async def _embed_missing(vectors: VectorIndex, embedder: Embedder) -> int:
    done = 0
    while missing := await vectors.missing(embedder.name, _BATCH):
        made = await packed(embedder, [text for _, text in missing])
        items = [item for item, _ in missing]
        await vectors.keep(embedder.name, list(zip(items, made, strict=True)))
        done += len(missing)
    return done


async def _with_meaning(
    vectors: VectorIndex,
    embedder: Embedder,
    query: str,
    scope: Scope,
    options: SearchOptions,
    by_words: Sequence[Candidate],
) -> list[Candidate]:
    """What was found by words and what is near in meaning, each once, with both scores."""
    await _embed_missing(vectors, embedder)
    (vector,) = await packed(embedder, [query])
    near = await vectors.nearest(
        vector, scope, sources=options.content_types, limit=options.limit * _WIDER, also=by_words
    )
    words = {(candidate.source, candidate.id): candidate.words for candidate in by_words}
    found = [replace(one, words=words.pop((one.source, one.id), 0.0)) for one in near]
    return found + [one for one in by_words if (one.source, one.id) in words]
