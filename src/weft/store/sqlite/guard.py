"""The guard of purged texts: for a day nothing writes one of them back.

A turn, an edit or a job that read a text before it was purged, in this process or another, still has it in
memory. All writes go through a connection that recognizes such a text by its fingerprint and its length, and
stores the mark of the purge in its place. The bytes of a block cannot be masked here, so they are refused.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, cast

import apsw

from weft.errors import PurgedText
from weft.store.sqlite.rows import fetch
from weft.types.purge_guard import PurgeGuard, purged_texts
from weft.types.redaction import Redaction, is_own_word

GUARD_SECONDS = 24 * 3600


class MaskingConnection:
    """A connection that masks purged texts in all values that it is given."""

    def __init__(self, connection: apsw.Connection, guards: Sequence[PurgeGuard]) -> None:
        self.connection, self._guards = connection, guards

    def execute(self, statements: str, bindings: Any = (), **options: Any) -> Any:
        if isinstance(bindings, dict):
            bindings = {name: self.masked(value) for name, value in bindings.items()}
        else:
            bindings = tuple(map(self.masked, bindings))
        return self.connection.execute(statements, bindings, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.connection, name)

    def masked(self, value: Any) -> Any:
        if isinstance(value, bytes):
            if purged_texts(value.decode("utf-8", "ignore"), self._guards):
                raise PurgedText
        elif isinstance(value, str):
            for text, mark in purged_texts(value, self._guards):
                value = value if is_own_word(value, text) else Redaction(text, mark).in_text(value)
        return value


def list_guards(db: apsw.Connection) -> list[PurgeGuard]:
    query = "select fingerprint, length, mark from purges where length is not null and at > ?"
    return fetch(db, PurgeGuard, query, time.time() - GUARD_SECONDS)


def guarded(connection: apsw.Connection) -> apsw.Connection:
    """Return the connection for the writes of a transaction: one that masks, if a text was purged lately."""
    guards = list_guards(connection)
    return cast("apsw.Connection", MaskingConnection(connection, guards)) if guards else connection


def without_purged(db: apsw.Connection, text: str) -> str:
    """Mask the purged texts in a text that is changed before it is written, such as one that is indexed."""
    masking: Any = db
    return str(masking.masked(text)) if isinstance(masking, MaskingConnection) else text


def unguarded(db: apsw.Connection) -> apsw.Connection:
    """Return the connection that masks nothing, for the purge itself."""
    masking: Any = db
    return masking.connection if isinstance(masking, MaskingConnection) else db


def save_guard(db: apsw.Connection, redaction: Redaction, fingerprint: str) -> None:
    """Begin to guard a text, inside a transaction, unless it is in too many others."""
    length = len(redaction.text) if redaction.can_be_guarded else None
    unguarded(db).execute(
        "insert into purges(fingerprint, at, places, length, mark) values(?1, ?2, 0, ?3, ?4) "
        "on conflict(fingerprint) do update set at = ?2, length = ?3, mark = ?4",
        (fingerprint, time.time(), length, redaction.mark),
    )


def forget_old_guards(db: apsw.Connection, now: float) -> None:
    """Forget the lengths of texts that are guarded no longer, inside a transaction."""
    query = "update purges set length = null where length is not null and at < ?"
    db.execute(query, (now - GUARD_SECONDS,))
