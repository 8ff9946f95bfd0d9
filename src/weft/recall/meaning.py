"""Meaning: an embedder together with the vectors that it made."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator

from weft.recall.embed import Embedder, packed
from weft.store.base import VectorIndex

_BATCH = 64
"""How many texts are embedded in one call: a transaction of the store each, after which others may write."""
_QUERIES = 128


class Meaning:
    """The vectors of a store, as one embedder makes them. Vectors of the last queries are cached."""

    def __init__(self, vectors: VectorIndex, embedder: Embedder) -> None:
        self.vectors, self._embedder = vectors, embedder
        self._queries: OrderedDict[str, bytes] = OrderedDict()
        self._lock = asyncio.Lock()

    @property
    def embedder(self) -> str:
        return self._embedder.name

    async def vector_of(self, query: str) -> bytes:
        """Embed a query."""
        vector = self._queries.get(query)
        if vector is None:
            (vector,) = await packed(self._embedder, [query])
            self._queries[query] = vector
            while len(self._queries) > _QUERIES:
                self._queries.popitem(last=False)
        return vector

    async def catch_up(self, limit: int | None = None) -> AsyncIterator[int]:
        """Embed the texts that have no vector yet, newest first, and yield their number after each batch.

        What is stored stays stored: whoever stops before the end goes on there later.
        """
        left = limit
        while left is None or left > 0:
            async with self._lock:
                size = _BATCH if left is None else min(_BATCH, left)
                missing = await self.vectors.list_missing(self.embedder, size)
                if not missing:
                    return
                embedded = await packed(self._embedder, [text for _, text in missing])
                items = [item for item, _ in missing]
                await self.vectors.save(self.embedder, list(zip(items, embedded, strict=True)))
            left = None if left is None else left - len(missing)
            yield len(missing)

    async def count_missing(self) -> int:
        return await self.vectors.count_missing(self.embedder)
