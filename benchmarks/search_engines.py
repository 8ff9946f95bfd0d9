"""The search engines that `peer_search.py` compares: Weft's searches, FTS5 and bm25s.

Each gets the same texts and the same queries. Those that search by meaning have the same embedder, wordllama.
"""

from __future__ import annotations

import asyncio
import importlib.util
import logging
import shutil
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import weft
from plain_search import PlainIndex
from weft import Message, SearchMode, SearchOptions
from weft.recall.wordllama import WordLlamaEmbedder

LIMIT = 10
BATCH = 1_000
_AGENT = "bench"
_LEAN = (
    "select texts.id, texts.text, score from (select rowid as hit, bm25(texts_fts) as score from texts_fts "
    "where texts_fts match ? order by score limit ?) join texts on texts.id = hit order by score"
)
NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Engine:
    """One search engine. `fill`, `add` and `search` are timed.

    After `fill` and `add` a search finds all texts.
    """

    name: ClassVar[str]
    kind: ClassVar[str]
    packages: ClassVar[tuple[str, ...]] = ()
    adds: ClassVar[int] = 20
    """How many times one more text is timed."""
    shares: ClassVar[type[Engine] | None] = None
    """The engine whose file it opens, after that was filled; it is not filled itself."""

    @classmethod
    def is_installed(cls) -> bool:
        return all(importlib.util.find_spec(package) is not None for package in cls.packages)

    async def open(self, folder: Path) -> None:
        """Prepare, untimed."""

    async def fill(self, messages: Sequence[Message]) -> None:
        """Store all messages."""
        raise NotImplementedError

    async def add(self, message: Message) -> None:
        """Store one more."""
        raise NotImplementedError

    async def search(self, words: Sequence[str]) -> list[str]:
        """Return the best texts."""
        raise NotImplementedError

    def size(self) -> int:
        """Return the bytes on disk."""
        return 0

    async def close(self) -> None:
        """Close what is open."""


def disk_bytes(path: Path) -> int:
    """Return the bytes of a folder, or of a file and the files beside it that begin with its name."""
    files = path.rglob("*") if path.is_dir() else path.parent.glob(f"{path.name}*")
    return sum(file.stat().st_size for file in files if file.is_file())


# --- Weft


class WeftWords(Engine):
    """A store without an embedder."""

    name, kind = "Weft, by words", "words"

    async def open(self, folder: Path) -> None:
        self._path = folder / f"weft-{(self.shares or type(self)).kind}.db"
        self.store = await weft.open(self._path, embedder=self.embedder())
        session = await self.store.sessions.new("bench", self.kind, "somebody", agent_id=_AGENT)
        self._session = session.id

    def embedder(self) -> weft.Embedder | None:
        return None

    async def fill(self, messages: Sequence[Message]) -> None:
        for at in range(0, len(messages), BATCH):
            await self.store.messages.append(self._session, *messages[at : at + BATCH])

    async def add(self, message: Message) -> None:
        await self.store.messages.append(self._session, message)

    async def search(self, words: Sequence[str]) -> list[str]:
        hits = await self.store.memory.search(_AGENT, " ".join(words), SearchOptions(limit=LIMIT))
        return [hit.content for hit in hits]

    def size(self) -> int:
        return disk_bytes(self._path)

    async def close(self) -> None:
        await self.store.close()


class WeftRecall(WeftWords):
    """The search of a turn: the lines that bear on a message, with their neighbours and dates."""

    name, kind, shares = "Weft, recall of a turn", "recall", WeftWords

    async def search(self, words: Sequence[str]) -> list[str]:
        recall = self.store.recall.recall
        hits = await recall(" ".join(words), sender="bench:somebody", session_id="", limit=LIMIT, now=NOW)
        return [hit.text for hit in hits]


class WeftMeaning(WeftWords):
    """A search by meaning embeds only a few new texts before it looks, so filling embeds all of them."""

    name, kind, packages = "Weft, by meaning", "meaning", ("wordllama",)
    mode: ClassVar[SearchMode] = SearchMode.VECTOR

    def embedder(self) -> weft.Embedder | None:
        return WordLlamaEmbedder()

    async def fill(self, messages: Sequence[Message]) -> None:
        await super().fill(messages)
        if self.store.meaning is not None:
            async for _ in self.store.meaning.catch_up():
                pass

    async def search(self, words: Sequence[str]) -> list[str]:
        options = SearchOptions(mode=self.mode, limit=LIMIT)
        hits = await self.store.memory.search(_AGENT, " ".join(words), options)
        return [hit.content for hit in hits]


class WeftBoth(WeftMeaning):
    name, kind, mode = "Weft, by words and meaning", "both", SearchMode.HYBRID
    shares = WeftMeaning


# --- by words


class PlainFts5(Engine):
    """The fastest SQL that we know: it picks the best ten before it reads them."""

    name, kind = "FTS5, bare SQL", "words"

    async def open(self, folder: Path) -> None:
        self._path = folder / "fts5.db"
        self._index = PlainIndex(self._path)

    async def fill(self, messages: Sequence[Message]) -> None:
        for at in range(0, len(messages), BATCH):
            await self._index.add(messages[at : at + BATCH])

    async def add(self, message: Message) -> None:
        await self._index.add([message])

    async def search(self, words: Sequence[str]) -> list[str]:
        return list((await self._index.search(words, _LEAN)).hits)

    def size(self) -> int:
        return disk_bytes(self._path)

    async def close(self) -> None:
        self._index.close()


class Bm25s(Engine):
    """The backend `numba`, which its documentation names as the fastest, and a stemmer as FTS5 has one.

    It has no way to add a text: the index is made anew. The texts themselves are kept in memory.
    """

    name, kind, packages, adds = "bm25s", "words", ("bm25s", "numba", "Stemmer"), 2

    async def open(self, folder: Path) -> None:
        self._bm25s = import_module("bm25s")
        self._stemmer = import_module("Stemmer").Stemmer("english")
        self._folder, self._texts = folder / "bm25s", list[str]()
        logging.getLogger("bm25s").setLevel(logging.WARNING)

    def _tokens(self, texts: Sequence[str]) -> Any:
        return self._bm25s.tokenize(texts, stopwords=None, stemmer=self._stemmer, show_progress=False)

    def _index(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
        self._retriever = self._bm25s.BM25(backend="numba")
        self._retriever.index(self._tokens(self._texts), show_progress=False)
        self._retriever.save(
            self._folder, corpus=[{"text": text} for text in self._texts], show_progress=False
        )

    async def fill(self, messages: Sequence[Message]) -> None:
        self._texts += [message.content for message in messages]
        await asyncio.to_thread(self._index)

    async def add(self, message: Message) -> None:
        await self.fill([message])

    async def search(self, words: Sequence[str]) -> list[str]:
        def work() -> list[str]:
            query = self._tokens([" ".join(words)])
            hits, _ = self._retriever.retrieve(query, k=min(LIMIT, len(self._texts)), show_progress=False)
            return [self._texts[int(at)] for at in hits[0]]

        return await asyncio.to_thread(work)

    def size(self) -> int:
        return disk_bytes(self._folder)


def load_bm25s(texts: Sequence[str], *, stopwords: str, limit: int) -> Callable[[str], list[int]]:
    """Index texts with bm25s in memory, and return a search for their places."""
    package, stemmer = import_module("bm25s"), import_module("Stemmer").Stemmer("english")
    logging.getLogger("bm25s").setLevel(logging.WARNING)
    options: dict[str, Any] = {"stopwords": stopwords, "stemmer": stemmer, "show_progress": False}
    retriever = package.BM25()
    retriever.index(package.tokenize(list(texts), **options), show_progress=False)

    def search(query: str) -> list[int]:
        most = min(limit, len(texts))
        hits, _ = retriever.retrieve(package.tokenize([query], **options), k=most, show_progress=False)
        return [int(at) for at in hits[0]]

    return search


def load_wordllama() -> Callable[[Sequence[str]], Any]:
    """Load the embedder that Weft uses, from the weights inside its package."""
    package = import_module("wordllama")
    model = package.WordLlama.load(cache_dir=Path(str(package.__file__)).parent, disable_download=True)
    return lambda texts: model.embed(list(texts))
