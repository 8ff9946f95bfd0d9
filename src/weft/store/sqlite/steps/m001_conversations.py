"""Sessions, who they are bound to, and the log."""

from __future__ import annotations

import apsw


def m001_conversations(db: apsw.Connection) -> None:
    db.execute(
        """
        create table sessions(
            id text primary key,
            channel text not null,
            conversation text not null,
            sender text not null,
            agent_id text not null default '',
            created_at real not null,
            active_at real not null,
            closed_at real
        ) strict;

        create index sessions_by_sender on sessions(sender, active_at);

        create table bindings(
            channel text not null,
            conversation text not null,
            sender text not null,
            session_id text not null references sessions(id),
            primary key (channel, conversation, sender)
        ) strict, without rowid;

        create table messages(
            id integer primary key,
            session_id text not null references sessions(id),
            seq integer not null,
            batch integer not null,
            role text not null,
            content text not null,
            tool_calls text,
            tool_call_id text,
            tool_name text,
            timestamp text,
            origin text not null,
            parts text,
            provider_data text,
            tokens integer not null,
            chars integer not null,
            sum_tokens integer not null,
            sum_chars4 integer not null,
            sum_chars5 integer not null,
            created_at real not null,
            unique (session_id, seq)
        ) strict;
        """
    )
