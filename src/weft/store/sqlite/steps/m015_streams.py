"""What streams have seen; where a message in the inbox came from, and the blocks that it names."""

from __future__ import annotations

import apsw


def m015_streams(db: apsw.Connection) -> None:
    db.execute(
        """
        alter table inbox add column origin text not null default 'user';

        alter table inbox add column blocks text not null default '[]';

        create table streams(
            name text primary key,
            source text not null,
            origin text not null,
            begun_at real not null
        ) strict;

        create table stream_items(
            stream text not null references streams(name),
            item text not null,
            signature text not null,
            digest text not null,
            times integer not null,
            block_id text not null,
            at real not null,
            primary key (stream, item)
        ) strict, without rowid;

        create index stream_items_blocks on stream_items(block_id) where block_id <> '';
        """
    )
