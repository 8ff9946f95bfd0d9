"""Who may come in: people who were paired, and hashes of tokens."""

from __future__ import annotations

import apsw


def m006_auth(db: apsw.Connection) -> None:
    db.execute(
        """
        create table auth_codes(
            channel text not null,
            sender text not null,
            hash blob not null unique,
            ends_at real not null,
            primary key (channel, sender)
        ) strict, without rowid;

        create table auth_pairings(
            channel text not null,
            sender text not null,
            at real not null,
            primary key (channel, sender)
        ) strict, without rowid;

        create table auth_tokens(
            name text primary key,
            hash blob not null unique,
            at real not null
        ) strict, without rowid;
        """
    )
