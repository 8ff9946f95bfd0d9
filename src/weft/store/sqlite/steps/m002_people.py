"""What is known about people, and what is to be done for them."""

from __future__ import annotations

import apsw


def m002_people(db: apsw.Connection) -> None:
    db.execute(
        """
        create table links(sender text primary key, person text not null) strict, without rowid;

        create table facts(
            id integer primary key,
            person text not null,
            key text not null,
            value text not null,
            message_id integer references messages(id),
            created_at real not null,
            ended_at real
        ) strict;

        create unique index facts_now on facts(person, key) where ended_at is null;

        create index facts_of on facts(person, key, created_at);

        create table summaries(
            id integer primary key,
            channel text not null,
            sender text not null,
            session_id text references sessions(id),
            text text not null,
            created_at real not null
        ) strict;

        create index summaries_of on summaries(channel, sender, created_at);

        create table tasks(
            id text primary key,
            sender text not null,
            text text not null,
            due text,
            due_at real,
            repeat text not null,
            action text not null,
            status text not null,
            created_at real not null
        ) strict;

        create index tasks_of on tasks(sender, status, due_at);
        """
    )
