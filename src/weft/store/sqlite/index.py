"""The index over everything that can be searched: full text, and whose it is.

Each text is indexed once under the names of those who may find it. Scripts without spaces are indexed by
pairs of characters, so that one index serves all of them.
"""

from __future__ import annotations

from hashlib import blake2b

import apsw

from weft.store.sqlite.rows import stamp
from weft.types.message import Message
from weft.types.tokenize import is_unspaced, pairs, words

_INDEXED_ROLES = frozenset({"user", "assistant"})


def index_message(
    db: apsw.Connection,
    message_id: int,
    message: Message,
    session_id: str,
    session: tuple[str, str, str],
    at: float,
) -> None:
    """Index what a person or the assistant said; tools' results and system texts are not searched."""
    if message.role in _INDEXED_ROLES and message.content.strip():
        agent_id, channel, sender = session
        owner = (agent_id, f"{channel}:{sender}", session_id)
        said_at = stamp(message.timestamp)
        index_text(
            db, ("message", str(message_id)), message.content, owner, at if said_at is None else said_at
        )


def index_text(
    db: apsw.Connection, what: tuple[str, str], text: str, owner: tuple[str, str, str], at: float
) -> None:
    """Index a text as (source, ref) for its owner (agent, sender, session); an older entry is replaced."""
    unindex(db, what)
    db.execute(
        "insert into items(source, ref, agent_id, sender, session_id, at) values(?, ?, ?, ?, ?, ?)",
        (*what, *owner, at),
    )
    # A block can be found by those it is shared with: they look for it by its id.
    names = (*owner[:2], what[1] if what[0] == "block" else "")
    scope = " ".join(scope_word(name) for name in names if name)
    db.execute(
        "insert into items_fts(rowid, text, scope) values(?, ?, ?)",
        (db.last_insert_rowid(), indexable(text), scope),
    )


def unindex(db: apsw.Connection, what: tuple[str, str]) -> None:
    found = db.execute("select id from items where source = ? and ref = ?", what).get
    if found is not None:
        db.execute("delete from items_fts where rowid = ?", (found,))
        db.execute("delete from items where id = ?", (found,))


def indexable(text: str) -> str:
    """The text as it is indexed: runs without spaces become pairs, all else stays."""
    if text.isascii():
        return text
    return " ".join(" ".join(pairs(word)) if is_unspaced(word) else word for word in words(text))


def scope_word(owner: str) -> str:
    """A word that stands for an owner, so that the index itself leaves out what is not theirs."""
    return "o" + blake2b(owner.encode("utf-8", "replace"), digest_size=10).hexdigest() + "x"
