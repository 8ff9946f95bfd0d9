"""Everything that is remembered of everyone, for an audit."""

from __future__ import annotations

from weft.store.sqlite.database import Database
from weft.store.sqlite.rows import moment
from weft.types.memory import Remembered

# A block is the operator's own if nobody else ever wrote to it; its creation does not count. The text of a
# stream is written by the system, but comes from elsewhere.
_ALL = """
    select 'block', agent_id, label, rendered,
        coalesce((
            select origin from stream_items join streams on name = stream
            where block_id = blocks.id and block_id <> ''
        ), case when exists(
            select 1 from block_updates where block_id = blocks.id and author <> 'system'
            and seq > (select min(seq) from block_updates where block_id = blocks.id)
        ) then 'agent' else 'operator' end),
        char_limit, updated_at from blocks
    union all
    select 'fact', person, key, value, 'user', null, created_at from facts where ended_at is null
    union all
    select 'note', agent_id, id, content, coalesce(metadata ->> '$.origin', 'agent'), null, created_at
        from archive
    union all
    select 'summary', channel || ':' || sender, cast(id as text), text, 'agent', null, created_at
        from summaries
"""


class SqliteRemembered:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def all(self) -> list[Remembered]:
        """Return blocks, facts, notes and summaries. Messages are the log, and not remembered text."""
        rows = await self._database.read(lambda db: [*db.execute(_ALL)])
        return [
            Remembered(
                kind=kind,
                owner=owner,
                name=name,
                text=text,
                origin=str(origin),
                limit=limit,
                at=moment(at),
            )
            for kind, owner, name, text, origin, limit, at in rows
        ]
