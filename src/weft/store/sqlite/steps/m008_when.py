"""Changes of blocks by their time, for what happened lately."""

from __future__ import annotations

import apsw


def m008_when(db: apsw.Connection) -> None:
    db.execute("create index block_updates_when on block_updates(at)")
