"""The version of a file, and the steps that bring an older one up to date.

A new file is created from the description of the tables, at the newest version. A step changes a file of an
older version in the same way; it is only ever added, never changed. All of it runs in the transaction that
records it, under the write lock, so that several processes can open a new file at the same moment.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import apsw

from weft.errors import StoreError
from weft.store.sqlite.index import index_messages
from weft.store.sqlite.schema import Table

APPLICATION_ID = 0x77656674
"""The mark `weft` in the header of a file, by which a database of another program is recognized."""

Step = Callable[[apsw.Connection], None]


_COLUMNS_002 = {
    "sessions": ("active_seq integer not null default 0",),
    "facts": (
        "began_seq integer not null default 0",
        "ended_seq integer",
        "asked_by text not null default ''",
    ),
    "tasks": ("asked_by text not null default ''",),
    "turns": ("seq integer not null default 0",),
    "inbox": ("seq integer not null default 0",),
    "outbox": ("seq integer not null default 0",),
    "results": ("outside text not null default ''",),
    "purges": ("length integer", "mark text not null default ''"),
    "auth_tokens": ("sender text not null default 'owner'",),
}
_ORDERS_002 = {
    "sessions": ("active_seq", "active_at"),
    "turns": ("seq", "created_at"),
    "inbox": ("seq", "created_at"),
    "outbox": ("seq", "created_at"),
}
_INDEXES_002 = """
    drop index facts_of; create index facts_of on facts(person, key, began_seq);
    create index facts_began on facts(began_seq);
    create index facts_ended on facts(ended_seq);
    drop index inbox_open; create index inbox_open on inbox(seq) where state <> 'done';
    create unique index inbox_order on inbox(seq);
    create unique index outbox_order on outbox(seq);
    create index sessions_by_activity on sessions(active_seq);
    drop index summaries_of; create index summaries_of on summaries(channel, sender, id);
    drop index turns_of; create index turns_of on turns(session_id, seq);
    create unique index turns_order on turns(seq);
"""


def m002_numbers_and_origins(db: apsw.Connection) -> None:
    """Add the numbers that order rows, and what is behind a fact, a task, a token and a purge."""
    for table, columns in _COLUMNS_002.items():
        for column in columns:
            db.execute(f"alter table {table} add column {column}")
    for table, (number, time_) in _ORDERS_002.items():
        db.execute(
            f"update {table} set {number} = ranked.number from (select id, row_number() "
            f"over (order by {time_}, id) as number from {table}) as ranked where ranked.id = {table}.id"
        )
    # What ended because a new value came has the number of that value.
    moments = "select created_at as moment from facts union select ended_at from facts"
    numbers = f"select moment, row_number() over (order by moment) as number from ({moments})"
    for number, moment in (("began_seq", "created_at"), ("ended_seq", "ended_at")):
        db.execute(f"update facts set {number} = n.number from ({numbers}) as n where n.moment = {moment}")
    db.execute(_INDEXES_002)


_FOLDS_003 = (
    "strategy text not null default 'summarize'",
    "model text not null default ''",
    "origin text not null default 'agent'",
    "outside text not null default '[]'",
    "outside_text text not null default ''",
    "tokens_before integer not null default 0",
    "tokens_after integer not null default 0",
    "input_tokens integer not null default 0",
    "output_tokens integer not null default 0",
    "cached_tokens integer not null default 0",
    "removed_at real",
)
_EPOCHS_003 = """
    create table epochs(id integer primary key autoincrement,
        session_id text not null references sessions(id),
        number integer not null, why text not null, first integer not null, folded integer not null,
        masked integer not null, recipe text not null, provider text not null, model text not null,
        ceiling integer not null, frozen text not null, began_at real not null, asked_at real not null,
        ended_at real, ended_why text not null default '') strict;
    create index epochs_of on epochs(session_id, id);
    create index epochs_running on epochs(session_id) where ended_at is null;
    create table forgets(id integer primary key autoincrement, why text not null, at real not null) strict;
    create table attachments(id integer primary key, session_id text not null references sessions(id),
        seq integer not null, epoch_id integer not null references epochs(id),
        attachment text not null) strict;
    create unique index attachments_of on attachments(epoch_id, seq);
    create table calls(id integer primary key, session_id text references sessions(id), kind text not null,
        provider text not null, model text not null, input_tokens integer not null,
        output_tokens integer not null, cached_tokens integer not null, written_tokens integer not null,
        error text not null, at real not null) strict;
    create index calls_of on calls(session_id, id);
    create index calls_by_model on calls(kind, model, id);
"""


def m003_epochs(db: apsw.Connection) -> None:
    """Add epochs with their attachments, calls beside the answers, and what a fold covers and cost."""
    db.execute("alter table messages add column outside text")
    for column in _FOLDS_003:
        db.execute(f"alter table folds add column {column}")
    db.execute(_EPOCHS_003)


_REQUESTS_004 = """
    create table contents(hash text primary key, text text not null) strict;
    create table requests(id integer primary key, turn_id text not null references turns(id),
        round integer not null, head text not null, marks text not null, digest text not null,
        base integer references requests(id), shared integer not null, shared_bytes integer not null,
        items integer not null, depth integer not null, at real not null) strict;
    create unique index requests_of on requests(turn_id, round);
    create table request_items(request_id integer not null references requests(id), position integer not null,
        hash text not null references contents(hash),
        primary key (request_id, position)) strict, without rowid;
    create index request_items_by_hash on request_items(hash);
"""


def m004_requests(db: apsw.Connection) -> None:
    """Add the requests of turns, and the texts that requests and receipts share."""
    db.execute("alter table summaries add column origin text not null default 'agent'")
    db.execute("alter table turns add column first integer not null default 0")
    db.execute("alter table turns add column outside text not null default '[]'")
    db.execute(_REQUESTS_004)


def m005_ratios_by_script(db: apsw.Connection) -> None:
    """Give the learned ratios of a model a counter and a script. Those that were of neither are dropped."""
    db.execute("alter table models rename to models_004")
    db.execute(
        "create table models(model text not null, counter text not null default '', "
        "script text not null default '', ratio real, window integer, "
        "primary key (model, counter, script)) strict, without rowid"
    )
    db.execute(
        "insert into models(model, window) select model, window from models_004 where window is not null"
    )
    db.execute("drop table models_004")


def m006_standing_instructions(db: apsw.Connection) -> None:
    """Add the table of standing instructions."""
    db.execute(
        """
        create table instructions(
            id text primary key, person text not null, text text not null, pinned integer not null,
            message_id integer references messages(id), created_at real not null, ended_at real,
            began_seq integer not null, ended_seq integer
        ) strict;
        create index instructions_of on instructions(person, began_seq);
        create index instructions_from on instructions(message_id) where message_id is not null;
        """
    )


_LINES_007 = (
    *(f"{name} integer not null default 0" for name in ("place", "run", "episode")),
    "speaker text not null default ''",
    "terms text not null default ''",
    *(f"{name} integer not null default 0" for name in ("words", "chars", "cues", "first_day", "last_day")),
)
_INDEXES_007 = """
    drop index items_not_embedded;
    create index items_by_embedded on items(embedded, id);
    create index items_in_session on items(session_id, place) where place > 0;
    create index items_by_speaker on items(sender, speaker) where speaker <> '';
    create index items_by_time on items(sender, at) where place > 0;
    create index items_by_day on items(sender, first_day) where first_day > 0;
"""


_VECTORS_007 = """
    drop table embedder;
    drop table vectors;
    drop table vector_signs;
    create table embedders(version integer primary key, name text not null) strict;
    create table vectors(
        item_id integer primary key references items(id) on delete cascade, version integer not null,
        vector blob not null
    ) strict;
    create table vector_signs(
        item_id integer primary key references items(id) on delete cascade, version integer not null,
        source text not null, agent integer not null, sender integer not null, session integer not null,
        signs blob not null
    ) strict;
"""


def m007_lines(db: apsw.Connection) -> None:
    """Add who said a message, what recall ranks lines by, and the embedder of each vector.

    Vectors are computed again: that of a line now has the lines before it.
    """
    db.execute("alter table messages add column name text not null default ''")
    for column in _LINES_007:
        db.execute(f"alter table items add column {column}")
    db.execute(_INDEXES_007)
    db.execute(_VECTORS_007)


STEPS: tuple[Step, ...] = (
    m002_numbers_and_origins,
    m003_epochs,
    m004_requests,
    m005_ratios_by_script,
    m006_standing_instructions,
    m007_lines,
)
"""Step `m002_...` is the first: version 1 is the starting schema, which is created from its description."""
_INDEXED_SINCE = 7
"""The messages of a file below this version are indexed again, after all steps."""


def migrate(db: apsw.Connection, path: str, tables: Sequence[Table]) -> None:
    """Bring a file to the newest version.

    Raises:
        StoreError: a newer version of Weft, or another program, wrote the file.
    """
    if find_version(db, path) == 1 + len(STEPS):
        return
    db.execute("begin immediate")
    try:
        version = find_version(db, path)
        if version == 0:
            _create(db, tables)
        else:
            for step in STEPS[version - 1 :]:
                step(db)
            if version < _INDEXED_SINCE:
                index_messages(db)
        for number, name in list(enumerate(["m001_start", *(step.__name__ for step in STEPS)], 1))[version:]:
            row = (number, name, time.time())
            db.execute("insert into migrations(number, name, at) values(?, ?, ?)", row)
        db.execute("commit")
    finally:
        if db.in_transaction:
            db.execute("rollback")


def find_version(db: apsw.Connection, path: str) -> int:
    """Return the version of a file; 0 for a new one."""
    if not db.execute("select count(*) from sqlite_schema").get:
        return 0
    if db.pragma("application_id") != APPLICATION_ID:
        raise StoreError(f"{path} is a database of another program: name another file.")
    version, newest = int(db.execute("select count(*) from migrations").get), 1 + len(STEPS)
    if version > newest:
        raise StoreError(
            f"{path} was written by a newer version of Weft (step {version} of {newest}): update Weft."
        )
    return version


def _create(db: apsw.Connection, tables: Sequence[Table]) -> None:
    db.pragma("application_id", APPLICATION_ID)
    for table in tables:
        for statement in table.statements():
            db.execute(statement)
