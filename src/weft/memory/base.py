"""The store as the rest of the program sees it: everything that lasts, with memory and recall."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, Self

from weft.memory.store import MemoryStore
from weft.recall.find import Finder
from weft.recall.meaning import Meaning
from weft.recall.searcher import Searcher
from weft.store.backend import Lasting
from weft.store.base import Recall, Scope
from weft.types.search import MemorySearchResult, SearchQuery

if TYPE_CHECKING:
    from weft.memory.audit import Finding


class Store(Lasting, Protocol):
    """Everything that lasts. Close it when done, or use it with `async with`."""

    memory: MemoryStore
    finder: Finder
    meaning: Meaning | None
    searcher: Searcher

    @property
    def recall(self) -> Recall: ...

    async def search(self, query: SearchQuery, scope: Scope) -> list[MemorySearchResult]:
        """Search messages, blocks, notes and facts, best hit first, each with its reasons.

        Raises:
            StoreError: the search is by meaning, and there is no embedder, or it does not work.
        """

    async def count_texts(self) -> int:
        """Return how many texts a search covers, and an embedder indexes."""

    async def audit(self) -> list[Finding]:
        """Return what is wrong with what is remembered, each with the command that mends it."""

    async def purge(self, text: str) -> int:
        """Overwrite a text for good, wherever it is stored: in the log, the index, blocks with their history.

        Its fingerprint stays in its place. Returns the number of places.

        Raises:
            StoreError: there is no text, or it cannot be removed from a block.
        """

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *_: object) -> None: ...
