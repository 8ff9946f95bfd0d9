"""The shape of the file, step by step. A step is only ever added, never changed.

Each step runs in the transaction that records it, under the write lock, so that several processes can
open a new file at the same moment.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import apsw

from weft.errors import StoreError
from weft.store.sqlite.steps.m001_conversations import m001_conversations
from weft.store.sqlite.steps.m002_people import m002_people
from weft.store.sqlite.steps.m003_blocks import m003_blocks
from weft.store.sqlite.steps.m004_archive_and_turns import m004_archive_and_turns
from weft.store.sqlite.steps.m005_index import m005_index
from weft.store.sqlite.steps.m006_auth import m006_auth
from weft.store.sqlite.steps.m007_vectors import m007_vectors
from weft.store.sqlite.steps.m008_when import m008_when
from weft.store.sqlite.steps.m009_texts import m009_texts
from weft.store.sqlite.steps.m010_purges import m010_purges
from weft.store.sqlite.steps.m011_items import m011_items
from weft.store.sqlite.steps.m012_turns import m012_turns
from weft.store.sqlite.steps.m013_folds import m013_folds
from weft.store.sqlite.steps.m014_post import m014_post
from weft.store.sqlite.steps.m015_streams import m015_streams
from weft.store.sqlite.steps.m016_progress import m016_progress
from weft.store.sqlite.steps.m017_backups import m017_backups

APPLICATION_ID = 0x77656674
"""Says `weft` in the file's header, so that no other program's database is taken for ours."""

Step = Callable[[apsw.Connection], None]

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
    m012_turns,
    m013_folds,
    m014_post,
    m015_streams,
    m016_progress,
    m017_backups,
)


def migrate(db: apsw.Connection, path: str) -> None:
    """Bring a file to the newest shape.

    Raises:
        StoreError: it was made by a newer version, or by another program.
    """
    if find_version(db, path) == len(STEPS):
        return
    db.execute("begin immediate")
    try:
        for number in range(find_version(db, path), len(STEPS)):
            STEPS[number](db)
            db.execute("insert into migrations values(?, ?, ?)", _record(number))
        db.execute("commit")
    finally:
        if db.in_transaction:
            db.execute("rollback")


def _record(number: int) -> tuple[int, str, float]:
    return number + 1, STEPS[number].__name__, time.time()


def find_version(db: apsw.Connection, path: str) -> int:
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
