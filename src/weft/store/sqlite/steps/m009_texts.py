"""Which version of a block its text shows."""

from __future__ import annotations

import apsw


def m009_texts(db: apsw.Connection) -> None:
    db.execute(
        """
        alter table blocks add column rendered_version integer not null default 0;

        create index blocks_stale on blocks(id) where rendered_version <> version;
        """
    )
