"""The contract of a database for searches: by words and by meaning. `base.py` has the one for lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from weft.store.base import Scope
from weft.types.search import Candidate, SearchContentType


class SearchIndex(Protocol):
    """Finds candidates by their words, within a scope."""

    async def candidates(
        self, query: str, scope: Scope, *, sources: Sequence[SearchContentType], limit: int
    ) -> Sequence[Candidate]:
        """Return the best matches, best first; nothing if the query has no words."""

    async def fact_candidates(self, query: str, scope: Scope, *, limit: int) -> Sequence[Candidate]:
        """Return the facts that have words of the query, best first, also those that have ended.

        Their scores can be compared with those of `candidates`.
        """

    async def around(self, messages: Sequence[str], count: int) -> Mapping[str, Sequence[Candidate]]:
        """Return each of these messages, by their ids, with so many lines of its session on either side."""

    async def speakers(self, scope: Scope) -> Sequence[str]:
        """Return the names of those who speak in the conversations of a scope, sorted."""


class VectorIndex(Protocol):
    """Finds candidates by their meaning. A vector is 32-bit floats, which the named embedder computed."""

    async def list_missing(self, embedder: str, limit: int) -> Sequence[tuple[int, str]]:
        """Return texts that have no vector of this embedder yet, newest first.

        From then on it is the one in use. Vectors of another one stay until they are replaced.
        """

    async def count_missing(self, embedder: str) -> int:
        """Return how many texts have no vector of this embedder yet."""

    async def count_texts(self) -> int:
        """Return how many texts there are that can have a vector."""

    async def find_embedder(self) -> str:
        """Return the name of the embedder in use; empty, if there never was one."""

    async def save(self, embedder: str, vectors: Sequence[tuple[int, bytes]]) -> None:
        """Store vectors of texts, unless a text was deleted or the embedder was changed meanwhile."""

    async def nearest(
        self,
        embedder: str,
        vector: bytes,
        scope: Scope,
        *,
        sources: Sequence[SearchContentType],
        limit: int,
        also: Sequence[Candidate] = (),
    ) -> Sequence[Candidate]:
        """Return what is closest in meaning, closest first; `also` is compared in any case."""
