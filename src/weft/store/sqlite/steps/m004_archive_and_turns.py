"""Notes, and the receipts of turns."""

from __future__ import annotations

import apsw


def m004_archive_and_turns(db: apsw.Connection) -> None:
    db.execute(
        """
        create table archive(
            id text primary key,
            agent_id text not null,
            content text not null,
            metadata text,
            created_at real not null
        ) strict;

        create index archive_of on archive(agent_id, created_at);

        create table turns(
            id text primary key,
            session_id text references sessions(id),
            receipt text not null,
            created_at real not null
        ) strict;

        create index turns_of on turns(session_id, created_at);
        """
    )
