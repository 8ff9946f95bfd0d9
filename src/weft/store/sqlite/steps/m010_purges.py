"""What was forgotten for good, by its fingerprint; and how often a block was rewritten for that."""

from __future__ import annotations

import apsw


def m010_purges(db: apsw.Connection) -> None:
    db.execute(
        """
        create table purges(fingerprint text primary key, at real not null, places integer not null) strict;

        alter table blocks add column epoch integer not null default 0;
        """
    )
