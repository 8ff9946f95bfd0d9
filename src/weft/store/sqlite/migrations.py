"""The shape of the file, step by step. A step is only ever added, never changed.

Each step runs in the transaction that records it, under the write lock, so that several processes can
open a new file at the same moment.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import apsw

from weft.errors import StoreError

APPLICATION_ID = 0x77656674
"""Says `weft` in the file's header, so that no other program's database is taken for ours."""

Step = Callable[[apsw.Connection], None]


def m001_conversations(db: apsw.Connection) -> None:
    """Sessions, who they are bound to, and the log."""
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


def m002_people(db: apsw.Connection) -> None:
    """What is known about people, and what is to be done for them."""
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


def m003_blocks(db: apsw.Connection) -> None:
    """Memory blocks: their changes, their snapshots, and who they are shared with."""
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


def m004_archive_and_turns(db: apsw.Connection) -> None:
    """Notes, and the receipts of turns."""
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


def m005_index(db: apsw.Connection) -> None:
    """The index over what can be searched."""
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


def m006_auth(db: apsw.Connection) -> None:
    """Who may come in: people who were paired, and hashes of tokens."""
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


def m007_vectors(db: apsw.Connection) -> None:
    """What texts mean, as one embedder sees it; their signs apart, where they are read fast."""
    db.execute(
        """
        drop table vectors;

        create table embedder(name text primary key) strict;

        create table vectors(
            item_id integer primary key references items(id) on delete cascade,
            vector blob not null
        ) strict;

        create table vector_signs(
            item_id integer primary key references items(id) on delete cascade,
            source text not null,
            agent integer not null,
            sender integer not null,
            session integer not null,
            signs blob not null
        ) strict;

        alter table items add column embedded integer not null default 0;

        create index items_not_embedded on items(id) where embedded = 0;
        """
    )


def m008_when(db: apsw.Connection) -> None:
    """Changes of blocks by their time, for what happened lately."""
    db.execute("create index block_updates_when on block_updates(at)")


def m009_texts(db: apsw.Connection) -> None:
    """Which version of a block its text shows."""
    db.execute(
        """
        alter table blocks add column rendered_version integer not null default 0;

        create index blocks_stale on blocks(id) where rendered_version <> version;
        """
    )


def m010_purges(db: apsw.Connection) -> None:
    """What was forgotten for good, by its fingerprint; and how often a block was rewritten for that."""
    db.execute(
        """
        create table purges(fingerprint text primary key, at real not null, places integer not null) strict;

        alter table blocks add column epoch integer not null default 0;
        """
    )


def m011_items(db: apsw.Connection) -> None:
    """Numbers of indexed texts are never used again: what was made for an old text is not taken for a new."""
    db.execute(
        """
        create table items_kept(
            id integer primary key autoincrement,
            source text not null,
            ref text not null,
            agent_id text not null,
            sender text not null,
            session_id text not null,
            at real not null,
            embedded integer not null default 0,
            unique (source, ref)
        ) strict;

        insert into items_kept(id, source, ref, agent_id, sender, session_id, at)
            select id, source, ref, agent_id, sender, session_id, at from items;

        delete from vectors;

        delete from vector_signs;

        drop table items;

        alter table items_kept rename to items;

        create index items_not_embedded on items(id) where embedded = 0;
        """
    )


STEPS: tuple[Step, ...] = (
    m001_conversations,
    m002_people,
    m003_blocks,
    m004_archive_and_turns,
    m005_index,
    m006_auth,
    m007_vectors,
    m008_when,
    m009_texts,
    m010_purges,
    m011_items,
)


def migrate(db: apsw.Connection, path: str) -> None:
    """Bring a file to the newest shape.

    Raises:
        StoreError: it was made by a newer version, or by another program.
    """
    if _version(db, path) == len(STEPS):
        return
    db.execute("begin immediate")
    try:
        for number in range(_version(db, path), len(STEPS)):
            STEPS[number](db)
            db.execute("insert into migrations values(?, ?, ?)", _record(number))
        db.execute("commit")
    finally:
        if db.in_transaction:
            db.execute("rollback")


def _record(number: int) -> tuple[int, str, float]:
    return number + 1, STEPS[number].__name__, time.time()


def _version(db: apsw.Connection, path: str) -> int:
    """How many steps the file has seen; a new file becomes ours here if we hold the write lock."""
    tables = db.execute("select count(*) from sqlite_schema").get
    owner = db.pragma("application_id")
    if tables and owner != APPLICATION_ID:
        raise StoreError(f"{path} is a database of another program: name another file.")
    if not tables:
        if db.in_transaction:
            db.pragma("application_id", APPLICATION_ID)
            db.execute("create table migrations(number integer primary key, name text, at real) strict")
        return 0
    done = int(db.execute("select count(*) from migrations").get)
    if done > len(STEPS):
        raise StoreError(
            f"{path} was written by a newer version of Weft (step {done} of {len(STEPS)}): update Weft."
        )
    return done
