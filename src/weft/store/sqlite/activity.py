"""What has happened lately to the memory of an agent, and through whom."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from weft.store.sqlite.database import Database
from weft.store.sqlite.rows import moment, stamp
from weft.types.memory import ActivityEntry

_LOOKS = 200
_WORDS = {
    "edit": "changed",
    "overwrite": "overwrote",
    "undo": "took back a change of",
    "redo": "brought back a change of",
}
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
    """Changes of the blocks that an agent owns or shares. What people said is not told to others."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def recent(self, agent_id: str, *, since: datetime, limit: int) -> list[ActivityEntry]:
        """What happened since then, newest last; the same thing several times in a row is one entry."""
        values = (stamp(since), agent_id, max(limit, _LOOKS))
        rows = await self._database.read(lambda db: [*db.execute(_NEWEST, values)])
        return list(_entries(reversed(rows)))[-limit:] if limit > 0 else []


def _entries(rows: Iterable[tuple[float, str, str, str, str]]) -> Iterable[ActivityEntry]:
    kept: list[tuple[tuple[str, str, str], ActivityEntry, int]] = []
    for at, author, kind, label, block_id in rows:
        key, times = (author, kind, block_id), 1
        if kept and kept[-1][0] == key:
            times = kept.pop()[2] + 1
        often = f" {times} times" if times > 1 else ""
        text = f"{_WORDS[kind]} the block {label!r}{often}"
        agent = "" if author == "system" else author
        entry = ActivityEntry(at=moment(at), text=text, agent=agent)  # type: ignore[arg-type]
        kept.append((key, entry, times))
    return [entry for _, entry, _ in kept]
