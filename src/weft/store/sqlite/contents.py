"""Contents: texts that are stored once, by their hash, however many turns refer to them."""

from __future__ import annotations

from hashlib import blake2b

import apsw

_UNUSED = """delete from contents where hash not in (select hash from request_items)
    and hash not in (select value from turns, json_each(turns.receipt, '$.runs') where receipt is not null)
    and hash not in (select receipt ->> '$.shared' from turns where receipt ->> '$.shared' is not null)"""


def hash_of(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def save_content(db: apsw.Connection, text: str) -> str:
    """Store a text, unless it is there already. Returns its hash."""
    name = hash_of(text)
    db.execute("insert or ignore into contents(hash, text) values(?, ?)", (name, text))
    return name


def delete_unused(db: apsw.Connection) -> None:
    """Delete the texts that no request and no receipt refers to."""
    db.execute(_UNUSED)
