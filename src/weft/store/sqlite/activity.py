"""The newest changes of the memory of an agent, and who made them."""

from __future__ import annotations

from datetime import UTC, datetime

from weft.store.rules import activity
from weft.store.sqlite.database import Database
from weft.store.sqlite.rows import stamp
from weft.types.memory import ActivityEntry

_MIN_ROWS = 200
"""How many changes are read at least: the same change several times in a row becomes one entry."""
_NEWEST = """
    select block_updates.at, block_updates.author, block_updates.kind, blocks.label, blocks.id
    from block_updates indexed by block_updates_when
    join blocks on blocks.id = block_updates.block_id
    where block_updates.at >= ?1 and (
        blocks.agent_id = ?2
        or blocks.id in (select block_id from block_shares where block_shares.agent_id = ?2)
    )
    order by block_updates.at desc limit ?3
"""


class SqliteActivity:
    """Changes of the blocks that an agent owns or shares. It does not tell what people said."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def recent(self, agent_id: str, *, since: datetime, limit: int) -> list[ActivityEntry]:
        values = (stamp(since), agent_id, max(limit, _MIN_ROWS))
        rows = await self._database.read(lambda db: [*db.execute(_NEWEST, values)])
        changes = ((datetime.fromtimestamp(at, UTC), *change) for at, *change in reversed(rows))
        return activity(changes)[-limit:] if limit > 0 else []
