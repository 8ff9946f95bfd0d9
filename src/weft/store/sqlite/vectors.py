"""Search by meaning: one bit per number is compared first, then the exact vectors of the best.

A vector of 256 numbers is a kilobyte, its signs are 32 bytes: all signs are compared, and only the vectors of
the best are read. Vectors are derived: they can be deleted and computed again. When the embedder is changed,
the vectors of the new one replace the old ones a batch at a time, and only the new ones are compared.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import apsw

from weft.store.base import Scope
from weft.store.sqlite.database import Repository
from weft.store.sqlite.identity import search_owners
from weft.store.sqlite.rows import fetch
from weft.store.sqlite.search import ITEM, MAY_FIND, TEXT, scope_values
from weft.types.search import Candidate, SearchContentType

OVERSAMPLE = 16
"""How many vectors are compared exactly for each hit that is wanted: signs alone are too coarse."""
_FILTERED = 8
"""How many times more signs are looked at if the search is limited further: the limits are checked after."""
_RUN_LINES, _BEFORE_CHARS = 12, 600
"""How many lines of a run are embedded with its last one, and how much of the run before."""

# A line seldom says all by itself: its vector also has what its speaker said just before, and to what.
# The index of the lines of a session is used only where a query says that places are above zero.
_SAID = f"""
    select items.id, case when items.place = 0 then coalesce({TEXT}, '') else
        coalesce(substr((
            select group_concat(content, ' ' order by near.place)
            from items as near join messages on messages.id = cast(near.ref as integer)
            where near.session_id = items.session_id and near.episode = items.episode
                and near.run = items.run - 1 and near.place > 0
                and near.place between items.place - {2 * _RUN_LINES} and items.place
        ), -{_BEFORE_CHARS}) || ' ', '') || coalesce((
            select group_concat(content, ' ' order by near.place)
            from items as near join messages on messages.id = cast(near.ref as integer)
            where near.session_id = items.session_id and near.run = items.run and near.place > 0
                and near.place between items.place - {_RUN_LINES} and items.place
        ), '') end
    from items where embedded < ?1 order by embedded desc, items.id desc limit ?2
"""
# A model of the same name may have been replaced by one whose vectors have another length.
SIGNS_NEAR = """
    select item_id from vector_signs
    where version = :version and 32 * length(signs) = length(:vector)
        and source in (select value from json_each(:sources))
        and (:everyone or agent in (select value from json_each(:owner_keys))
            or sender in (select value from json_each(:owner_keys)) or item_id in (
            select items.id from block_shares
            join items on items.source = 'block' and items.ref = block_shares.block_id
            where block_shares.agent_id = :owner
        ))
        and (:session_key is null or session <> :session_key)
    order by vec_distance_hamming(vec_bit(signs), vec_quantize_binary(:vector)), item_id
    limit :looks
"""
_NEAREST = f"""
    with near as ({SIGNS_NEAR})
    select {ITEM}, coalesce(1.0 - vec_distance_cosine(vectors.vector, :vector), 0.0) as meaning
    from items join vectors on vectors.item_id = items.id and vectors.version = :version
        and length(vectors.vector) = length(:vector)
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
        version = await self._version(embedder) or await self._write(lambda db: _start(db, embedder))
        rows: list[Any] = await self._read(lambda db: db.execute(_SAID, (version, limit)).fetchall())
        return rows

    async def count_missing(self, embedder: str) -> int:
        version = await self._version(embedder)
        query = "select count(*) from items where embedded < ?"
        return await self._read(lambda db: db.execute(query, (version or 1 << 62,)).get) or 0

    async def count_texts(self) -> int:
        return await self._read(lambda db: db.execute("select count(*) from items").get) or 0

    async def find_embedder(self) -> str:
        query = "select name from embedders order by version desc limit 1"
        return await self._value(str, query) or ""

    async def save(self, embedder: str, vectors: Sequence[tuple[int, bytes]]) -> None:
        def work(db: apsw.Connection) -> None:
            version = version_of(db, embedder)
            for item, vector in vectors if version else ():
                _save(db, item, version, vector)

        await self._write(work)

    async def nearest(
        self,
        embedder: str,
        vector: bytes,
        scope: Scope,
        *,
        sources: Sequence[SearchContentType],
        limit: int,
        also: Sequence[Candidate] = (),
    ) -> list[Candidate]:
        def work(db: apsw.Connection) -> list[Candidate]:
            version = version_of(db, embedder)
            if not version:
                return []
            values = {
                **near_values(db, scope, sources, vector=vector, limit=limit),
                "version": version,
                "also": json.dumps([(candidate.source.value, candidate.id) for candidate in also]),
            }
            return fetch(db, Candidate, _NEAREST, values)

        return await self._read(work)

    async def _version(self, embedder: str) -> int:
        return await self._read(lambda db: version_of(db, embedder))


def version_of(db: apsw.Connection, embedder: str) -> int:
    """Return the number of the embedder in use, if this is its name; else 0."""
    row = db.execute("select version, name from embedders order by version desc limit 1").fetchone()
    return int(str(row[0])) if row is not None and row[1] == embedder else 0


def near_values(
    db: apsw.Connection,
    scope: Scope,
    sources: Sequence[SearchContentType],
    *,
    vector: bytes,
    limit: int,
) -> dict[str, object]:
    """Return the values of the parameters in `SIGNS_NEAR` and `MAY_FIND`, but for the version."""
    return {
        **scope_values(db, scope, sources),
        "vector": vector,
        "owner_keys": json.dumps([_key(name) for name in search_owners(db, scope.owner)]),
        "session_key": _key(scope.without_session) if scope.without_session and not scope.view_from else None,
        "looks": limit * OVERSAMPLE * (_FILTERED if scope.only.is_set else 1),
    }


def _start(db: apsw.Connection, embedder: str) -> int:
    """Begin to use an embedder. Returns its number."""
    if not (version := version_of(db, embedder)):
        db.execute("insert into embedders(name) values(?)", (embedder,))
        version = db.last_insert_rowid()
    return version


def _save(db: apsw.Connection, item: int, version: int, vector: bytes) -> None:
    query = "select source, agent_id, sender, session_id from items where id = ?"
    row = db.execute(query, (item,)).fetchone()
    if row is not None:
        source, *owners = row
        db.execute(
            "insert or replace into vectors(item_id, version, vector) values(?, ?, ?)",
            (item, version, vector),
        )
        db.execute(
            "insert or replace into vector_signs(item_id, version, source, agent, sender, session, signs) "
            "values(?, ?, ?, ?, ?, ?, vec_quantize_binary(?))",
            (item, version, source, *(_key(str(owner)) for owner in owners), vector),
        )
        db.execute("update items set embedded = ? where id = ?", (version, item))


def _key(owner: str) -> int:
    """Return a number that stands for a name: rows of signs stay small. The name itself is checked after."""
    return int.from_bytes(blake2b(owner.encode("utf-8", "replace"), digest_size=8).digest(), signed=True)
