"""Items that streams have seen already, so that each is reported exactly once.

Names and texts are stored as digests only, so that a purge need not overwrite them.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

import apsw

from weft.store.sqlite.database import Repository
from weft.store.sqlite.rows import fetch
from weft.types.envelope import Seen, notice_id

_ITEM = "stream, item, signature, digest, times, block_id"


class SqliteStreams(Repository):
    async def find_seen(self, stream: str, source: str) -> dict[str, Seen] | None:
        def work(db: apsw.Connection) -> dict[str, Seen] | None:
            query = "select exists(select 1 from streams where name = ? and source = ?)"
            if not db.execute(query, (stream, source)).get:
                return None
            items = fetch(db, Seen, f"select {_ITEM} from stream_items where stream = ?", stream)
            return {seen.item: seen for seen in items}

        return await self._read(work)

    async def start(self, stream: str, source: str, origin: str, seen: Iterable[Seen]) -> None:
        def work(db: apsw.Connection) -> None:
            db.execute(
                "insert into streams(name, source, origin, begun_at) values(?1, ?2, ?3, ?4) "
                "on conflict(name) do update set source = ?2, origin = ?3, begun_at = ?4",
                (stream, source, origin, time.time()),
            )
            db.execute("update stream_items set signature = '', digest = '' where stream = ?", (stream,))
            save(db, seen)

        await self._write(work)

    async def save(self, seen: Iterable[Seen]) -> None:
        await self._write(lambda db: save(db, seen))

    async def has_open_notice(self, stream: str) -> bool:
        query = (
            "select exists(select 1 from inbox where state <> 'done' and kind = 'notice' "
            "and substr(external_id, 1, length(?1)) = ?1)"
        )
        return bool(await self._value(int, query, notice_id(stream, "")))

    async def list_oldest_blocks(self, stream: str, keep: int) -> list[str]:
        query = (
            "select block_id from stream_items where stream = ? and block_id <> '' "
            "order by at desc, item limit -1 offset ?"
        )
        return [block_id for (block_id,) in await self._rows(query, stream, keep)]

    async def forget_block(self, block_id: str) -> None:
        query = "update stream_items set block_id = '' where block_id = ? and block_id <> ''"
        await self._execute(query, block_id)


def save(db: apsw.Connection, seen: Iterable[Seen]) -> None:
    """Store items inside a transaction. A block and a count that were stored before stay."""
    now = time.time()
    for one in seen:
        db.execute(
            f"insert into stream_items({_ITEM}, at) values(?1, ?2, ?3, ?4, ?5, ?6, ?7) "
            "on conflict(stream, item) do update "
            "set signature = ?3, digest = ?4, times = max(times, ?5), at = iif(?5 > times, ?7, at), "
            "block_id = iif(?6 = '', block_id, ?6)",
            (one.stream, one.item, one.signature, one.digest, one.times, one.block_id, now),
        )
