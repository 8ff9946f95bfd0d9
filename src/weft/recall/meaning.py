"""Meaning: an embedder together with the vectors that it made."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import AsyncIterator

from weft.errors import WeftError
from weft.recall.embed import Embedder, packed
from weft.store.indexes import VectorIndex

_log = logging.getLogger(__name__)
BATCH = 32
"""How many texts are embedded in one call: a transaction of the store each, after which others may write."""
_QUERIES = 128
_QUERY_SECONDS, _REST_SECONDS = 10.0, 30.0
"""How long a search waits for the embedder, and for how long it is not asked again after a failure."""


class Meaning:
    """The vectors of a store, as one embedder makes them. Vectors of the last queries are cached.

    `failure` says why the embedder did not work when it was last asked; it is empty if it did.
    """

    def __init__(self, vectors: VectorIndex, embedder: Embedder) -> None:
        self.vectors, self._embedder = vectors, embedder
        self.failure = ""
        self._queries: OrderedDict[str, bytes] = OrderedDict()
        self._lock = asyncio.Lock()
        self._rests_until = 0.0
        self._was_in_use = self._was_replaced = False

    @property
    def embedder(self) -> str:
        return self._embedder.name

    async def vector_of(self, query: str) -> bytes:
        """Embed a query. Without an embedder that works this is empty: the search goes by words alone."""
        vector = self._queries.get(query)
        if vector is None:
            if time.monotonic() < self._rests_until:
                return b""
            try:
                async with asyncio.timeout(_QUERY_SECONDS):
                    (vector,) = await packed(self._embedder, [query])
            except WeftError as error:
                self.note_failure(str(error))
                return b""
            except TimeoutError:
                self.note_failure(f"The embedder {self.embedder!r} did not answer in {_QUERY_SECONDS:g} s.")
                return b""
            self.failure, self._rests_until = "", 0.0
            self._queries[query] = vector
            while len(self._queries) > _QUERIES:
                self._queries.popitem(last=False)
        return vector

    def note_failure(self, reason: str) -> None:
        """Log a failure of the embedder, once until it works again, and let it rest for a while."""
        if not self.failure:
            _log.warning("searches go by words alone for now: %s", reason)
        self.failure, self._rests_until = reason, time.monotonic() + _REST_SECONDS

    async def catch_up(self, limit: int | None = None, *, batch: int = BATCH) -> AsyncIterator[int]:
        """Embed the texts that have no vector yet, newest first, and yield their number after each batch.

        What is stored stays stored: whoever stops before the end goes on there later. If another process has
        changed the embedder meanwhile, nothing is done: the newer settings win.

        Raises:
            WeftError: the embedder failed.
        """
        left = limit
        while left is None or left > 0:
            async with self._lock:
                if await self._is_replaced():
                    return
                size = batch if left is None else min(batch, left)
                missing = await self.vectors.list_missing(self.embedder, size)
                self._was_in_use = True
                if not missing:
                    return
                embedded = await packed(self._embedder, [text for _, text in missing])
                items = [item for item, _ in missing]
                await self.vectors.save(self.embedder, list(zip(items, embedded, strict=True)))
            self.failure = ""
            left = None if left is None else left - len(missing)
            yield len(missing)

    async def catch_up_before_search(self, limit: int) -> None:
        """Embed a few texts that are new, unless that is being done already. A failure is only logged."""
        if self._lock.locked():
            return
        try:
            async for _ in self.catch_up(limit):
                pass
        except WeftError as error:
            self.note_failure(str(error))

    async def count_missing(self) -> int:
        return await self.vectors.count_missing(self.embedder)

    async def _is_replaced(self) -> bool:
        if self._was_in_use and not self._was_replaced:
            self._was_replaced = await self.vectors.find_embedder() != self.embedder
            if self._was_replaced:
                _log.warning("the embedder was changed in another program: start this one again to use it")
        return self._was_replaced
