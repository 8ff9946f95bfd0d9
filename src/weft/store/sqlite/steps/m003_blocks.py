"""Memory blocks: their changes, their snapshots, and who they are shared with."""

from __future__ import annotations

import apsw


def m003_blocks(db: apsw.Connection) -> None:
    db.execute(
        """
        create table blocks(
            id text primary key,
            agent_id text not null,
            label text not null,
            description text not null,
            block_type text not null,
            schema text not null,
            permission text not null,
            char_limit integer not null,
            pinned integer not null,
            rendered text not null default '',
            version integer not null default 0,
            created_at real not null,
            updated_at real not null,
            unique (agent_id, label)
        ) strict;

        create table block_updates(
            seq integer primary key autoincrement,
            block_id text not null references blocks(id) on delete cascade,
            kind text not null,
            blob blob not null,
            before blob not null,
            after blob not null,
            undoes integer,
            author text not null,
            at real not null
        ) strict;

        create index block_updates_of on block_updates(block_id, seq);

        create table block_snapshots(
            block_id text primary key references blocks(id) on delete cascade,
            seq integer not null,
            blob blob not null
        ) strict, without rowid;

        create table block_shares(
            block_id text not null references blocks(id) on delete cascade,
            agent_id text not null,
            permission text not null,
            primary key (block_id, agent_id)
        ) strict, without rowid;

        create index block_shares_with on block_shares(agent_id);
        """
    )
