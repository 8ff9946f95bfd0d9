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
from weft.store.sqlite.schema import Table

APPLICATION_ID = 0x77656674
"""The mark `weft` in the header of a file, by which a database of another program is recognized."""

Step = Callable[[apsw.Connection], None]


def m002_outside(db: apsw.Connection) -> None:
    """Add what is behind a fact or a task, and the person that a token speaks for."""
    for table in ("facts", "tasks"):
        db.execute(f"alter table {table} add column asked_by text not null default ''")
    db.execute("alter table auth_tokens add column person text not null default 'owner'")


STEPS: tuple[Step, ...] = (m002_outside,)
"""Step `m002_...` is the first: version 1 is the starting schema, which is created from its description."""


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
