"""What came in and what must go out; who was turned away; tasks with a place and a zone."""

from __future__ import annotations

import apsw


def m014_post(db: apsw.Connection) -> None:
    db.execute(
        """
        create table inbox(
            id text primary key,
            channel text not null,
            external_id text not null,
            conversation text not null,
            sender text not null,
            text text,
            name text not null,
            kind text not null,
            state text not null,
            created_at real not null,
            ended_at real
        ) strict;

        create unique index inbox_once on inbox(channel, external_id) where external_id <> '';

        create index inbox_open on inbox(created_at) where state <> 'done';

        create table outbox(
            id text primary key,
            inbox_id text,
            task_id text,
            channel text not null,
            conversation text not null,
            text text,
            state text not null,
            attempts integer not null default 0,
            next_at real not null,
            created_at real not null,
            sent_at real
        ) strict;

        create index outbox_open on outbox(next_at) where state in ('pending', 'sending');

        create table denials(
            id integer primary key,
            channel text not null,
            sender text not null,
            why text not null,
            at real not null
        ) strict;

        alter table turns add column inbox_id text;

        alter table tasks add column zone text not null default 'UTC';

        alter table tasks add column first_due text;

        alter table tasks add column channel text not null default '';

        alter table tasks add column conversation text not null default '';

        alter table tasks add column attempts integer not null default 0;

        create index tasks_due on tasks(due_at) where status = 'pending' and due_at is not null;
        """
    )
