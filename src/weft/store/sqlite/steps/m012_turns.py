"""A turn is kept from its first moment: the message before anything is done with it, then every step."""

from __future__ import annotations

import apsw


def m012_turns(db: apsw.Connection) -> None:
    db.execute(
        """
        create table turns_kept(
            id text primary key,
            session_id text references sessions(id),
            state text not null,
            text text,
            owner text not null default '',
            error text,
            receipt text,
            created_at real not null,
            ended_at real
        ) strict;

        insert into turns_kept(id, session_id, state, receipt, created_at, ended_at)
            select id, session_id, 'done', receipt, created_at, created_at from turns;

        drop table turns;

        alter table turns_kept rename to turns;

        create index turns_of on turns(session_id, created_at);

        create index turns_running on turns(session_id) where state = 'running';

        create table turn_steps(
            turn_id text not null references turns(id),
            seq integer not null,
            message text not null,
            primary key (turn_id, seq)
        ) strict, without rowid;

        create table results(
            id text primary key,
            session_id text not null references sessions(id),
            tool text not null,
            content text not null,
            created_at real not null
        ) strict;

        create table ratios(model text primary key, ratio real not null) strict, without rowid;
        """
    )
