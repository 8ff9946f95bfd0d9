"""The full-text index over everything that can be searched.

Each text is indexed once, with words that stand for its owners. Scripts without spaces are indexed by pairs
of characters, so that one index serves all scripts.
"""

from __future__ import annotations

from hashlib import blake2b

import apsw

from weft.store.sqlite.guard import without_purged
from weft.store.sqlite.rows import stamp
from weft.types.message import Message
from weft.types.tokenize import is_unspaced, pairs, slices, words

_INDEXED_ROLES = frozenset({"user", "assistant"})


def index_message(
    db: apsw.Connection,
    message_id: int,
    message: Message,
    session_id: str,
    session: tuple[str, str, str],
    at: float,
) -> None:
    """Index a message of a person or the assistant. Tools' results and system texts are not searched."""
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
    # Agents that a block is shared with search for it by its id.
    names = (*owner[:2], what[1] if what[0] == "block" else "")
    scope = " ".join(scope_word(name) for name in names if name)
    db.execute(
        "insert into items_fts(rowid, text, scope) values(?, ?, ?)",
        (db.last_insert_rowid(), indexable(without_purged(db, text)), scope),
    )


def unindex(db: apsw.Connection, what: tuple[str, str]) -> None:
    item = db.execute("select id from items where source = ? and ref = ?", what).get
    if item is not None:
        db.execute("delete from items_fts where rowid = ?", (item,))
        db.execute("delete from items where id = ?", (item,))


def indexable(text: str) -> str:
    """Return the text to index: runs without spaces become pairs, all else stays."""
    if text.isascii():
        return text
    parts = (word for part in slices(text) for word in words(part))
    return " ".join(" ".join(pairs(word)) if is_unspaced(word) else word for word in parts)


def scope_word(owner: str) -> str:
    """Return a word that stands for an owner, so that the index itself leaves out what is not theirs."""
    return "o" + blake2b(owner.encode("utf-8", "replace"), digest_size=10).hexdigest() + "x"
