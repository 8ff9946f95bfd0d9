"""The full-text index over everything that can be searched.

Each text is indexed once, with words that stand for its owners. Scripts without spaces are indexed by pairs
of characters, so that one index serves all scripts.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import apsw

from weft.dates.find import DateSpan, dates_in
from weft.store.sqlite.guard import without_purged
from weft.store.sqlite.rows import MESSAGE_COLUMNS, message_from, stamp, storable
from weft.types.line import EPISODE_SECONDS, cues_of
from weft.types.message import Message
from weft.types.tokenize import STOP_WORDS, is_unspaced, pairs, slices, words

_TOKENIZER = ("porter", ["unicode61", "remove_diacritics", "2"])
_RANKED_CHARS = 20_000
"""How much of a line recall knows: more of a long one is only found by a search."""
MOST_DAYS, _YEAR = 93, 365
_RUN_LINES = 8
"""A longer run is cut: what was said ten lines ago is no part of what is said now."""
Source = tuple[str, str | int]
"""What a text is: a kind, and the id of a block or note or the number of a message."""
LineColumns = tuple[str, int, int, int, int, int]
_NO_LINE: LineColumns = ("", 0, 0, 0, 0, 0)
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
        at = at if said_at is None else said_at
        place = _next_place(db, message, session_id, at)
        index_text(db, ("message", message_id), message.content, owner, at, place)


def index_messages(db: apsw.Connection) -> None:
    """Index all messages, each after those before it in its session."""
    query = (
        f"select messages.id, session_id, agent_id, channel, sender, messages.created_at, {MESSAGE_COLUMNS} "
        "from messages join sessions on sessions.id = session_id order by messages.id"
    )
    for message_id, session_id, agent, channel, sender, at, *columns in db.execute(query):
        index_message(db, message_id, message_from(columns), session_id, (agent, channel, sender), at)


Place = tuple[int, int, int, str]
"""Where a line stands in its session: its number, its run, its episode, and who said it."""


def _next_place(db: apsw.Connection, message: Message, session_id: str, at: float) -> Place:
    """Return the place of a new line. A run ends when somebody else speaks, an episode after a pause."""
    query = (
        "select place, run, episode, speaker, items.at, role from items join messages "
        "on messages.id = cast(items.ref as integer) where items.session_id = ? and place > 0 "
        "order by place desc limit 1"
    )
    row: Any = db.execute(query, (session_id,)).fetchone()
    if row is None:
        return 1, 1, 1, storable(message.name)
    place, run, episode, speaker, last_at, role = row
    is_new_episode = abs(at - last_at) > EPISODE_SECONDS
    is_new_run = is_new_episode or (message.role, message.name) != (role, speaker)
    if not is_new_run:
        in_run = "select count(*) from items where session_id = ? and place between ? and ? and run = ?"
        is_new_run = db.execute(in_run, (session_id, place - _RUN_LINES, place, run)).get >= _RUN_LINES
    return place + 1, run + is_new_run, episode + is_new_episode, storable(message.name)


def _known_place(db: apsw.Connection, what: Source) -> Place:
    query = "select place, run, episode, speaker from items where source = ? and ref = ?"
    row: Any = db.execute(query, what).fetchone()
    return row or (0, 0, 0, "")


def index_text(
    db: apsw.Connection,
    what: Source,
    text: str,
    owner: tuple[str, str, str],
    at: float,
    place: Place | None = None,
) -> None:
    """Index a text as (source, ref) for its owner (agent, sender, session); an older entry is replaced.

    A line of a conversation that is indexed again keeps its place.
    """
    if place is None:
        place = _known_place(db, what)
        forget_vectors(db, owner[2], place[1])
    unindex(db, what)
    indexed = indexable(without_purged(db, text))
    line = _line_columns(db, indexed, text, at) if place[0] else _NO_LINE
    db.execute(
        "insert into items(source, ref, agent_id, sender, session_id, at, place, run, episode, speaker, "
        f"terms, words, chars, cues, first_day, last_day) values({', '.join('?' * 16)})",
        (*what, *owner, at, *place, *line),
    )
    # Agents that a block is shared with search for it by its id.
    names = (*owner[:2], str(what[1]) if what[0] == "block" else "")
    scope = " ".join(scope_word(name) for name in names if name)
    db.execute(
        "insert into items_fts(rowid, text, scope) values(?, ?, ?)",
        (db.last_insert_rowid(), indexed, scope),
    )


def _line_columns(db: apsw.Connection, indexed: str, text: str, at: float) -> LineColumns:
    """Return the terms of a line, how many words and characters it has, its cues, and which days it names."""
    terms = [term for term in stems(db, indexed[:_RANKED_CHARS]) if term not in _stop_stems(db)]
    days = _days(text, at)
    return " ".join(dict.fromkeys(terms)), len(terms), len(text), int(cues_of(text)), *days


def _days(text: str, at: float) -> tuple[int, int]:
    """Return the first and the last day that a text speaks of, as understood when it was said.

    Spans of more than a season ("since May", "last year") are left out: they tell too little.
    """
    try:
        said = datetime.fromtimestamp(at, UTC)
    except (ValueError, OverflowError):  # a year before 1 or after 9999, as a time zone may make it
        return 0, 0
    spans = [_nearest(span, said.toordinal()) for span in dates_in(text, said)]
    short = [(first, last) for first, last in spans if last - first <= MOST_DAYS]
    if not short:
        return 0, 0
    first, last = min(first for first, _ in short), max(last for _, last in short)
    return (first, last) if last - first <= MOST_DAYS else short[0]


def _nearest(span: DateSpan, said: int) -> tuple[int, int]:
    """Return the days of a span. Without a year ("the first of October") they are those nearest to `said`."""
    first, last = span.first.toordinal(), span.last.toordinal()
    if span.is_recurring and abs(first + _YEAR - said) < abs(first - said):
        return first + _YEAR, last + _YEAR
    return first, last


def stems(db: apsw.Connection, text: str) -> list[str]:
    """Return the terms of a text, as the index has them."""
    tokenize = db.fts5_tokenizer(*_TOKENIZER)
    data = text.encode("utf-8", "replace")
    flags = apsw.FTS5_TOKENIZE_DOCUMENT
    return list(map(str, tokenize(data, flags, None, include_offsets=False, include_colocated=False)))


@lru_cache(maxsize=1)
def _stop_stems(db: apsw.Connection) -> frozenset[str]:
    return frozenset(stems(db, " ".join(STOP_WORDS)))


def forget_vectors(db: apsw.Connection, session_id: str, run: int) -> None:
    """Delete the vectors that have lines of a run in them, so that they are computed again."""
    if not run:
        return
    lines = "select id from items where session_id = ?1 and run between ?2 and ?2 + 1 and place > 0"
    for table in ("vectors", "vector_signs"):
        db.execute(f"delete from {table} where item_id in ({lines})", (session_id, run))
    db.execute(f"update items set embedded = 0 where id in ({lines})", (session_id, run))


def unindex(db: apsw.Connection, what: Source) -> None:
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
