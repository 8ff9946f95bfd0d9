"""Search by meaning: one bit per number is compared first, then the exact vectors of the best.

A vector of 256 numbers is a kilobyte, its signs are 32 bytes: all signs are compared, and only the vectors of
the best are read. Vectors are derived: they can be deleted and computed again. Only those of one embedder are
stored.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import blake2b

import apsw

from weft.store.base import Scope
from weft.store.sqlite.database import Repository
from weft.store.sqlite.identity import search_owners
from weft.store.sqlite.rows import fetch
from weft.store.sqlite.search import ITEM, MAY_FIND, TEXT, scope_values
from weft.types.search import Candidate, SearchContentType

OVERSAMPLE = 16
"""How many vectors are compared exactly for each hit that is wanted: signs alone are too coarse."""

_NEAREST = f"""
    with near as (
        select item_id from vector_signs
        where source in (select value from json_each(:sources))
            and (:everyone or agent in (select value from json_each(:owner_keys))
                or sender in (select value from json_each(:owner_keys)) or item_id in (
                select items.id from block_shares
                join items on items.source = 'block' and items.ref = block_shares.block_id
                where block_shares.agent_id = :owner
            ))
            and (:session_key is null or session <> :session_key)
        order by vec_distance_hamming(vec_bit(signs), vec_quantize_binary(:vector)), item_id
        limit :looks
    )
    select {ITEM}, coalesce(1.0 - vec_distance_cosine(vectors.vector, :vector), 0.0) as meaning
    from items join vectors on vectors.item_id = items.id
    where items.id in (
            select item_id from near
            union
            select items.id from json_each(:also) as named
            join items on items.source = named.value ->> 0 and items.ref = named.value ->> 1
        )
        and {MAY_FIND}
    order by meaning desc, items.id
"""


class SqliteVectors(Repository):
    async def list_missing(self, embedder: str, limit: int) -> list[tuple[int, str]]:
        if await self._value(str, "select name from embedder") != embedder:
            await self._write(lambda db: _start(db, embedder))
        query = (
            f"select items.id, coalesce({TEXT}, '') from items where embedded = 0 order by items.id limit ?"
        )
        return await self._rows(query, limit)

    async def save(self, embedder: str, vectors: Sequence[tuple[int, bytes]]) -> None:
        def work(db: apsw.Connection) -> None:
            if db.execute("select name from embedder").get != embedder:
                return
            for item, vector in vectors:
                _save(db, item, vector)

        await self._write(work)

    async def nearest(
        self,
        vector: bytes,
        scope: Scope,
        *,
        sources: Sequence[SearchContentType],
        limit: int,
        also: Sequence[Candidate] = (),
    ) -> list[Candidate]:
        def work(db: apsw.Connection) -> list[Candidate]:
            values = {
                **scope_values(db, scope, sources),
                "vector": vector,
                "owner_keys": json.dumps([_key(name) for name in search_owners(db, scope.owner)]),
                "session_key": _key(scope.without_session)
                if scope.without_session and not scope.view_from
                else None,
                "looks": limit * OVERSAMPLE,
                "also": json.dumps([(candidate.source.value, candidate.id) for candidate in also]),
            }
            return fetch(db, Candidate, _NEAREST, values)

        return await self._read(work)


def _start(db: apsw.Connection, embedder: str) -> None:
    db.execute("delete from embedder")
    db.execute("insert into embedder(name) values(?)", (embedder,))
    db.execute("delete from vectors")
    db.execute("delete from vector_signs")
    db.execute("update items set embedded = 0 where embedded = 1")


def _save(db: apsw.Connection, item: int, vector: bytes) -> None:
    query = "select source, agent_id, sender, session_id from items where id = ?"
    row = db.execute(query, (item,)).fetchone()
    if row is not None:
        source, *owners = row
        db.execute("insert or replace into vectors(item_id, vector) values(?, ?)", (item, vector))
        db.execute(
            "insert or replace into vector_signs(item_id, source, agent, sender, session, signs) "
            "values(?, ?, ?, ?, ?, vec_quantize_binary(?))",
            (item, source, *(_key(str(owner)) for owner in owners), vector),
        )
        db.execute("update items set embedded = 1 where id = ?", (item,))


def _key(owner: str) -> int:
    """Return a number that stands for a name: rows of signs stay small. The name itself is checked after."""
    return int.from_bytes(blake2b(owner.encode("utf-8", "replace"), digest_size=8).digest(), signed=True)
