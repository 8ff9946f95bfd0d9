"""Summaries that stand for the beginning of a conversation. The messages themselves stay where they are."""

from __future__ import annotations

import apsw


def m013_folds(db: apsw.Connection) -> None:
    db.execute(
        """
        create table folds(
            session_id text not null references sessions(id),
            last integer not null,
            text text not null,
            created_at real not null,
            primary key (session_id, last)
        ) strict, without rowid;
        """
    )
