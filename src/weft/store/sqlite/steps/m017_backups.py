"""When and where the newest backup was made: one row."""

from __future__ import annotations

import apsw


def m017_backups(db: apsw.Connection) -> None:
    db.execute(
        "create table backups("
        "id integer primary key check (id = 1), at real not null, path text not null) strict"
    )
