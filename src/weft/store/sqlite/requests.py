"""Requests of turns: each as the one before it and what is new, with its items stored once by their hash."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import apsw

from weft.store.sqlite.contents import delete_unused, hash_of, save_content
from weft.store.sqlite.rows import moment, storable
from weft.types.sent import SentRequest, StoredRequest

_DEEPEST = 64
"""How many requests may build on each other until one is stored whole."""
_HASHES = """
    with recursive chain(id, base, shared, wanted, depth) as (
        select id, base, shared, items, 0 from requests where id = ?
        union all
        select requests.id, requests.base, requests.shared, min(wanted, chain.shared), chain.depth + 1
        from chain join requests on requests.id = chain.base
    )
    select position, hash from chain join request_items on request_id = chain.id
    where position < wanted order by depth desc
"""
"""The items of a request, by their positions: an own one comes after one of a request it builds on."""
_REQUESTS = "id, turn_id, round, head, marks, digest, base, shared, shared_bytes, at"


def save_requests(db: apsw.Connection, turn_id: str, requests: Sequence[SentRequest]) -> None:
    """Store the requests of a turn, inside its transaction."""
    for number, request in enumerate(requests, 1):
        _save(db, turn_id, number, request)


def _save(db: apsw.Connection, turn_id: str, number: int, request: SentRequest) -> None:
    hashes = [hash_of(storable(item)) for item in request.items]
    base, depth, before = _newest(db, turn_id)
    shared = 0
    while shared < min(len(before), len(hashes)) and before[shared] == hashes[shared]:
        shared += 1
    shared_bytes = sum(len(item.encode("utf-8", "surrogatepass")) for item in request.items[:shared])
    is_whole = depth >= _DEEPEST or not shared
    db.execute(
        "insert into requests(turn_id, round, head, marks, digest, base, shared, shared_bytes, items, depth, "
        "at) values(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            turn_id,
            number,
            *map(storable, (request.head, request.marks)),
            request.digest,
            None if is_whole else base,
            shared,
            shared_bytes,
            len(hashes),
            0 if is_whole else depth + 1,
            time.time(),
        ),
    )
    request_id = db.last_insert_rowid()
    first = 0 if is_whole else shared
    for at in range(first, len(hashes)):
        save_content(db, storable(request.items[at]))
        row = (request_id, at, hashes[at])
        db.execute("insert into request_items(request_id, position, hash) values(?, ?, ?)", row)


def _newest(db: apsw.Connection, turn_id: str) -> tuple[int | None, int, list[str]]:
    """Return the id, the depth and the items of the newest request of the session of a turn."""
    row = db.execute(
        "select requests.id, depth from requests join turns on turns.id = turn_id where turns.session_id = "
        "(select session_id from turns where id = ?) order by turns.seq desc, round desc limit 1",
        (turn_id,),
    ).fetchone()
    return (None, 0, []) if row is None else (row[0], row[1], hashes_of(db, row[0]))


def hashes_of(db: apsw.Connection, request_id: int) -> list[str]:
    """Return the hashes of all items of a request, those of the requests it builds on among them."""
    rows: Any = db.execute(_HASHES, (request_id,))
    hashes: dict[int, str] = dict(rows)
    return [hashes[at] for at in sorted(hashes)]


def read_requests(db: apsw.Connection, turn_id: str) -> list[StoredRequest]:
    query = f"select {_REQUESTS} from requests where turn_id = ? order by round"
    return [_stored(db, row) for row in db.execute(query, (turn_id,)).fetchall()]


def _stored(db: apsw.Connection, row: Any) -> StoredRequest:
    id_, turn_id, number, head, marks, digest, _, shared, shared_bytes, at = row
    texts = [
        db.execute("select text from contents where hash = ?", (hash_,)).get for hash_ in hashes_of(db, id_)
    ]
    return StoredRequest(
        turn_id=turn_id,
        round=number,
        request=SentRequest(head=head, items=tuple(texts), marks=marks, digest=digest),
        shared_items=shared,
        shared_bytes=shared_bytes,
        at=moment(at),
    )


def read_sizes(db: apsw.Connection, turn_id: str) -> list[tuple[int, int]]:
    """Return the bytes of each request of a turn, and how many of them the request before had, too."""
    query = (
        "select shared_bytes, base is null, (select coalesce(sum(length(cast(text as blob))), 0) from "
        "request_items join contents using (hash) where request_id = requests.id) from requests "
        "where turn_id = ? order by round"
    )
    rows: list[Any] = db.execute(query, (turn_id,)).fetchall()
    return [(own if is_whole else own + shared, shared) for shared, is_whole, own in rows]


def delete_requests(db: apsw.Connection, before: float) -> int:
    """Delete old requests. Those that build on them are stored whole first."""
    old = "(select id from requests where at < ?1)"
    heirs = db.execute(f"select id from requests where at >= ?1 and base in {old}", (before,)).fetchall()
    for request_id in [int(str(row[0])) for row in heirs]:
        for at, name in enumerate(hashes_of(db, request_id)):
            row = (request_id, at, name)
            db.execute("insert or ignore into request_items(request_id, position, hash) values(?, ?, ?)", row)
        db.execute("update requests set base = null, depth = 0 where id = ?", (request_id,))
    db.execute(f"delete from request_items where request_id in {old}", (before,))
    db.execute("update requests set base = null where at < ?", (before,))
    db.execute("delete from requests where at < ?", (before,))
    number = int(db.changes())
    delete_unused(db)
    return number
