"""What streams have seen already, so that each thing is told exactly once.

Names and texts are stored as digests only, so that a purge has nothing to do here.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

import apsw

from weft.store.sqlite.database import Database
from weft.types.envelope import Seen, notice_id

_ITEM = "stream, item, signature, digest, times, block_id"


class SqliteStreams:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def seen(self, stream: str, source: str) -> dict[str, Seen] | None:
        """Return what a stream has seen, by item; None if it never read that source."""

        def work(db: apsw.Connection) -> dict[str, Seen] | None:
            query = "select exists(select 1 from streams where name = ? and source = ?)"
            if not db.execute(query, (stream, source)).get:
                return None
            rows = db.execute(f"select {_ITEM} from stream_items where stream = ?", (stream,))
            return {row[1]: _seen(row) for row in rows}

        return await self._database.read(work)

    async def begin(self, stream: str, source: str, origin: str, seen: Iterable[Seen]) -> None:
        """Record the first look at a source. Its items are known from now on, those of another are not."""

        def work(db: apsw.Connection) -> None:
            db.execute(
                "insert into streams(name, source, origin, begun_at) values(?1, ?2, ?3, ?4) "
                "on conflict(name) do update set source = ?2, origin = ?3, begun_at = ?4",
                (stream, source, origin, time.time()),
            )
            db.execute("update stream_items set signature = '', digest = '' where stream = ?", (stream,))
            save(db, seen)

        await self._database.write(work)

    async def save(self, seen: Iterable[Seen]) -> None:
        await self._database.write(lambda db: save(db, seen))

    async def is_waiting(self, stream: str) -> bool:
        """Return whether a notice of the stream is not answered yet."""
        query = (
            "select exists(select 1 from inbox where state <> 'done' and kind = 'notice' "
            "and substr(external_id, 1, length(?1)) = ?1)"
        )
        mark = notice_id(stream, "")
        return bool(await self._database.read(lambda db: db.execute(query, (mark,)).get))

    async def oldest_blocks(self, stream: str, keep: int) -> list[str]:
        """Return the ids of all blocks of a stream but the newest `keep`."""
        query = (
            "select block_id from stream_items where stream = ? and block_id <> '' "
            "order by at desc, item limit -1 offset ?"
        )
        return [row[0] for row in await self._database.read(lambda db: [*db.execute(query, (stream, keep))])]

    async def forget_block(self, block_id: str) -> None:
        """Forget the block of an item. The item itself stays known."""
        query = "update stream_items set block_id = '' where block_id = ? and block_id <> ''"
        await self._database.write(lambda db: db.execute(query, (block_id,)).get)


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


def _seen(row: tuple[str, str, str, str, int, str]) -> Seen:
    stream, item, signature, digest, times, block_id = row
    return Seen(stream=stream, item=item, signature=signature, digest=digest, times=times, block_id=block_id)
