"""The newest changes of the memory of an agent, and who made them."""

from __future__ import annotations

from datetime import datetime

from weft.store.rules import describe_changes
from weft.store.sqlite.database import Repository
from weft.store.sqlite.rows import moment, stamp
from weft.types.memory import ActivityEntry

_MIN_ROWS = 200
"""How many changes are read at least: the same change several times in a row becomes one entry."""
# Block by block: most of the newest changes of a store are those of other people.
_NEWEST = """
    select block_updates.at, block_updates.author, block_updates.kind, blocks.label, blocks.id
    from blocks join block_updates on block_updates.seq in (
        select seq from block_updates as own where own.block_id = blocks.id order by seq desc limit ?3
    )
    where block_updates.at >= ?1 and blocks.id in (
        select id from blocks where agent_id = ?2 union select block_id from block_shares where agent_id = ?2
    )
    order by block_updates.at desc limit ?3
"""


class SqliteActivity(Repository):
    """Changes of the blocks that an agent owns or shares. What people said is not among them."""

    async def recent(self, agent_id: str, *, since: datetime, limit: int) -> list[ActivityEntry]:
        rows = await self._rows(_NEWEST, stamp(since), agent_id, max(limit, _MIN_ROWS))
        changes = ((moment(at), *change) for at, *change in reversed(rows))
        return describe_changes(changes)[-limit:] if limit > 0 else []
