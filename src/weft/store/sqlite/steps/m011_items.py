"""Numbers of indexed texts are never used again: what was made for an old text is not taken for a new."""

from __future__ import annotations

import apsw


def m011_items(db: apsw.Connection) -> None:
    db.execute(
        """
        create table items_kept(
            id integer primary key autoincrement,
            source text not null,
            ref text not null,
            agent_id text not null,
            sender text not null,
            session_id text not null,
            at real not null,
            embedded integer not null default 0,
            unique (source, ref)
        ) strict;

        insert into items_kept(id, source, ref, agent_id, sender, session_id, at)
            select id, source, ref, agent_id, sender, session_id, at from items;

        delete from vectors;

        delete from vector_signs;

        drop table items;

        alter table items_kept rename to items;

        create index items_not_embedded on items(id) where embedded = 0;
        """
    )
