"""Whether the message of a turn was in the log before the turn began."""

from __future__ import annotations

import apsw


def m016_known(db: apsw.Connection) -> None:
    db.execute("alter table turns add column is_known integer not null default 0")
