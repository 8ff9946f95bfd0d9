"""What texts mean, as one embedder sees it; their signs apart, where they are read fast."""

from __future__ import annotations

import apsw


def m007_vectors(db: apsw.Connection) -> None:
    db.execute(
        """
        drop table vectors;

        create table embedder(name text primary key) strict;

        create table vectors(
            item_id integer primary key references items(id) on delete cascade,
            vector blob not null
        ) strict;

        create table vector_signs(
            item_id integer primary key references items(id) on delete cascade,
            source text not null,
            agent integer not null,
            sender integer not null,
            session integer not null,
            signs blob not null
        ) strict;

        alter table items add column embedded integer not null default 0;

        create index items_not_embedded on items(id) where embedded = 0;
        """
    )
