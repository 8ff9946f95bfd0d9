"""The search engines that compare vectors: sqlite-vec, and mem0. Both have the embedder that Weft has."""

from __future__ import annotations

import asyncio
import logging
import os
import struct
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

from plain_search import bare_connection
from search_engines import BATCH, LIMIT, Engine, disk_bytes, load_wordllama
from weft import Message


class SqliteVec(Engine):
    """A table `vec0` with the vectors, and the texts beside it; all vectors are compared."""

    name, kind, packages = "sqlite-vec, exact", "meaning", ("sqlite_vec", "wordllama")
    table: ClassVar[str] = (
        "create virtual table if not exists vectors using vec0(vector float[256] distance_metric=cosine)"
    )
    inserts: ClassVar[tuple[str, ...]] = ("insert into vectors(rowid, vector) values(?1, ?2)",)
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
            for statement in self.inserts:
                self._db.executemany(statement, [(row[0], row[2]) for row in rows])

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
    """The same with binary quantization: the best by bits are compared exactly.

    Its guide has bits and vectors in one table `vec0`, which took three times as long as vectors in a plain
    table, so they are in one. It is made from the vectors in the file, untimed.
    """

    name, kind, shares = "sqlite-vec, bits and rescoring", "meaning", SqliteVec
    table = (
        "create virtual table signs using vec0(signs bit[256]);"
        "create table exact(id integer primary key, vector blob not null);"
        "insert into signs(rowid, signs) select rowid, vec_quantize_binary(vector) from vectors;"
        "insert into exact select rowid, vector from vectors"
    )
    inserts = (
        "insert into exact values(?1, ?2)",
        "insert into signs(rowid, signs) values(?1, vec_quantize_binary(?2))",
    )
    nearest = (
        "with near as (select rowid as hit from signs where signs match vec_quantize_binary(?1) "
        "and k = ?2 * 16) select texts.text from near join texts on texts.id = hit join exact on "
        "exact.id = hit order by vec_distance_cosine(exact.vector, ?1) limit ?2"
    )


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
