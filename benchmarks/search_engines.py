"""The search engines that `peer_search.py` compares: Weft's searches, and those of other libraries.

Each gets the same texts and the same queries. Those that search by meaning have the same embedder, wordllama.
"""

from __future__ import annotations

import asyncio
import importlib.util
import logging
import os
import shutil
import struct
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import weft
from plain_search import PlainIndex, bare_connection
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

    After `fill` and `add` a search finds all texts, also by another process where it stores them in a file.
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
    """A search by meaning embeds what is new before it looks, so filling and adding end with one."""

    name, kind, packages = "Weft, by meaning", "meaning", ("wordllama",)
    mode: ClassVar[SearchMode] = SearchMode.VECTOR

    def embedder(self) -> weft.Embedder | None:
        return WordLlamaEmbedder()

    async def fill(self, messages: Sequence[Message]) -> None:
        await super().fill(messages)
        await self.search(["bread"])

    async def add(self, message: Message) -> None:
        await super().add(message)
        await self.search(["bread"])

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


# --- by meaning


def load_wordllama() -> Callable[[Sequence[str]], Any]:
    """Load the embedder that Weft uses, from the weights inside its package."""
    package = import_module("wordllama")
    model = package.WordLlama.load(cache_dir=Path(str(package.__file__)).parent, disable_download=True)
    return lambda texts: model.embed(list(texts))


class SqliteVec(Engine):
    """A table `vec0` with the vectors, and the texts beside it; all vectors are compared."""

    name, kind, packages = "sqlite-vec, exact", "meaning", ("sqlite_vec", "wordllama")
    table: ClassVar[str] = (
        "create virtual table if not exists vectors using vec0(vector float[256] distance_metric=cosine)"
    )
    insert: ClassVar[str] = "insert into vectors(rowid, vector) values(?1, ?2)"
    nearest: ClassVar[str] = (
        "select texts.text from (select rowid as hit, distance from vectors where vector match ?1 and k = ?2)"
        " join texts on texts.id = hit order by distance"
    )

    async def open(self, folder: Path) -> None:
        self._path = folder / "sqlite-vec.db"
        self._embed = load_wordllama()
        self._db = bare_connection(self._path)
        self._db.enable_load_extension(True)
        self._db.load_extension(import_module("sqlite_vec").loadable_path())
        self._db.execute("create table if not exists texts(id integer primary key, text text not null)")
        self._db.execute(self.table)

    def _vectors(self, texts: Sequence[str]) -> list[bytes]:
        return [struct.pack("<256f", *vector.tolist()) for vector in self._embed(texts)]

    def _insert(self, texts: Sequence[str]) -> None:
        vectors = self._vectors(texts)
        with self._db:
            first: int = self._db.execute("select coalesce(max(id), 0) + 1 from texts").get
            rows = list(zip(range(first, first + len(texts)), texts, vectors, strict=True))
            self._db.executemany("insert into texts values(?, ?)", [row[:2] for row in rows])
            self._db.executemany(self.insert, [(row[0], row[2]) for row in rows])

    async def fill(self, messages: Sequence[Message]) -> None:
        for at in range(0, len(messages), BATCH):
            texts = [message.content for message in messages[at : at + BATCH]]
            await asyncio.to_thread(self._insert, texts)

    async def add(self, message: Message) -> None:
        await asyncio.to_thread(self._insert, [message.content])

    async def search(self, words: Sequence[str]) -> list[str]:
        def work() -> list[str]:
            [vector] = self._vectors([" ".join(words)])
            return [text for (text,) in self._db.execute(self.nearest, (vector, LIMIT))]

        return await asyncio.to_thread(work)

    def size(self) -> int:
        return disk_bytes(self._path)

    async def close(self) -> None:
        self._db.close()


class SqliteVecBits(SqliteVec):
    """The same with binary quantization, as its guide has it: the best by bits are compared exactly.

    The bits are made from the vectors in the file, untimed.
    """

    name, kind, shares = "sqlite-vec, bits and rescoring", "meaning", SqliteVec
    table = "create virtual table if not exists signs using vec0(signs bit[256])"
    insert = "insert into vectors(rowid, vector) values(?1, ?2)"
    nearest = (
        "with near as (select rowid as hit from signs where signs match vec_quantize_binary(?1) "
        "and k = ?2 * 16) select texts.text from near join texts on texts.id = hit join vectors on "
        "vectors.rowid = hit order by vec_distance_cosine(vectors.vector, ?1) limit ?2"
    )

    async def open(self, folder: Path) -> None:
        await super().open(folder)
        self._sign(0)

    def _sign(self, after: int) -> None:
        query = "select rowid, vec_quantize_binary(vector) from vectors where rowid > ?"
        self._db.execute(f"insert into signs(rowid, signs) {query}", (after,))

    def _insert(self, texts: Sequence[str]) -> None:
        after: int = self._db.execute("select coalesce(max(rowid), 0) from signs").get
        super()._insert(texts)
        self._sign(after)


class Mem0(Engine):
    """mem0 with `infer=False`, so that no model is asked, and an embedder of our own in place of its client.

    Its vector store is qdrant in a folder. A key is set because its clients ask for one; nothing is sent.
    """

    name, kind, packages = "mem0, infer=False", "meaning", ("mem0", "wordllama")

    async def open(self, folder: Path) -> None:
        os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": str(folder / "mem0")}
        self._folder = folder / "mem0"
        self._memory = await asyncio.to_thread(self._make)
        for name in ("mem0", "qdrant_client"):
            logging.getLogger(name).setLevel(logging.ERROR)

    def _make(self) -> Any:
        package, base = import_module("mem0"), import_module("mem0.embeddings.base")
        unused = {"provider": "openai", "config": {"api_key": "unused"}}
        store = {"path": str(self._folder / "qdrant"), "on_disk": True, "embedding_model_dims": 256}
        memory = package.Memory.from_config(
            {
                "embedder": unused,
                "llm": unused,
                "vector_store": {"provider": "qdrant", "config": store},
                "history_db_path": str(self._folder / "history.db"),
            }
        )
        embed = load_wordllama()

        def embedded(_: Any, text: str, memory_action: Any = None) -> list[float]:
            vector: list[float] = embed([text])[0].tolist()
            return vector

        kind = type("Embedder", (base.EmbeddingBase,), {"__init__": lambda _: None, "embed": embedded})
        memory.embedding_model = kind()
        return memory

    async def fill(self, messages: Sequence[Message]) -> None:
        own = [{"role": message.role, "content": message.content} for message in messages]
        await asyncio.to_thread(self._memory.add, own, user_id="somebody", infer=False)

    async def add(self, message: Message) -> None:
        await self.fill([message])

    async def search(self, words: Sequence[str]) -> list[str]:
        def work() -> list[str]:
            hits = self._memory.search(" ".join(words), filters={"user_id": "somebody"}, top_k=LIMIT)
            return [hit["memory"] for hit in hits["results"]]

        return await asyncio.to_thread(work)

    def size(self) -> int:
        return disk_bytes(self._folder)

    async def close(self) -> None:
        self._memory.vector_store.client.close()


ENGINES: tuple[type[Engine], ...] = (
    WeftWords,
    PlainFts5,
    Bm25s,
    WeftRecall,
    WeftMeaning,
    WeftBoth,
    SqliteVec,
    SqliteVecBits,
)
SLOW_ENGINES: tuple[type[Engine], ...] = (WeftMeaning, WeftBoth, Mem0)
"""Compared at a smaller size: mem0 stores some thirty messages a second."""
