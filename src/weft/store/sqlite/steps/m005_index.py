"""The index over what can be searched."""

from __future__ import annotations

import apsw


def m005_index(db: apsw.Connection) -> None:
    db.execute(
        """
        create table items(
            id integer primary key,
            source text not null,
            ref text not null,
            agent_id text not null,
            sender text not null,
            session_id text not null,
            at real not null,
            unique (source, ref)
        ) strict;

        create virtual table items_fts using fts5(
            text, scope, content = '', contentless_delete = 1,
            tokenize = "porter unicode61 remove_diacritics 2", prefix = '3'
        );

        create table vectors(
            item_id integer primary key references items(id) on delete cascade,
            embedder text not null,
            vector blob not null
        ) strict;
        """
    )
