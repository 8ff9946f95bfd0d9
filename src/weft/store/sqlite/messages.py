"""The message log: append-only, every message counted when it is written."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import apsw

from weft.errors import StoreError
from weft.store.sqlite.database import Repository
from weft.store.sqlite.index import index_message
from weft.store.sqlite.rows import MESSAGE_COLUMNS, message_columns, message_from, storable
from weft.tokens import COUNTERS, Counter, calls_json
from weft.types.message import Message
from weft.types.session import Entry, Fold, Tail

_PAGE = 256
_SUMS = {"exact": "sum_tokens", "chars/4": "sum_chars4", "chars/5": "sum_chars5"}


class SqliteMessages(Repository):
    async def append(self, session_id: str, *messages: Message) -> None:
        if messages:
            prices = [COUNTERS["exact"].message(message) for message in messages]
            await self._write(lambda db: append_messages(db, session_id, messages, prices))

    async def newest(self, session_id: str, n: int) -> list[Message]:
        query = f"select {MESSAGE_COLUMNS} from messages where session_id = ? order by seq desc limit ?"
        return [message_from(row) for row in reversed(await self._rows(query, session_id, max(n, 0)))]

    async def all(self, session_id: str) -> list[Message]:
        query = f"select {MESSAGE_COLUMNS} from messages where session_id = ? order by seq"
        return [message_from(row) for row in await self._rows(query, session_id)]

    async def between(self, session_id: str, first: int, last: int) -> list[Message]:
        where = "session_id = ? and seq between ? and ?"
        query = f"select {MESSAGE_COLUMNS} from messages where {where} order by seq"
        return [message_from(row) for row in await self._rows(query, session_id, first, last)]

    async def fold(self, session_id: str) -> Fold | None:
        query = (
            "select last, text, created_at as at from folds where session_id = ? order by last desc limit 1"
        )
        folds = await self._fetch(Fold, query, session_id)
        return folds[0] if folds else None

    async def add_fold(self, session_id: str, fold: Fold) -> None:
        query = "insert or replace into folds(session_id, last, text, created_at) values(?, ?, ?, ?)"
        await self._execute(query, session_id, fold.last, storable(fold.text), time.time())

    async def tail(
        self,
        session_id: str,
        counter: Counter,
        *,
        max_tokens: int | None,
        max_messages: int | None,
        after: int = 0,
    ) -> Tail:
        reach = _Reach(session_id, after, max_tokens, max_messages)
        return await self._read(lambda db: _tail(db, counter, reach))


def append_messages(
    db: apsw.Connection, session_id: str, messages: Sequence[Message], prices: Sequence[int]
) -> None:
    """Append messages inside a transaction, with their running sums, and index them."""
    session = db.execute(
        "select agent_id, channel, sender from sessions where id = ?", (session_id,)
    ).fetchone()
    if session is None:
        raise StoreError(f"There is no session {session_id!r}: find or create it first.")
    last = db.execute(
        "select seq, batch, sum_tokens, sum_chars4, sum_chars5 from messages "
        "where session_id = ? order by seq desc limit 1",
        (session_id,),
    ).fetchone()
    seq, batch, tokens, chars4, chars5 = last or (0, 0, 0, 0, 0)
    now = time.time()
    for message, price in zip(messages, prices, strict=True):
        chars = len(message.content) + (len(calls_json(message)) if message.tool_calls else 0)
        seq += 1
        batch += message.role == "user" or not batch
        tokens += price
        chars4 += COUNTERS["chars/4"].message(message)
        chars5 += COUNTERS["chars/5"].message(message)
        db.execute(
            f"insert into messages(session_id, seq, batch, {MESSAGE_COLUMNS}, tokens, chars, sum_tokens, "
            f"sum_chars4, sum_chars5, created_at) values({', '.join('?' * 18)})",
            (session_id, seq, batch, *message_columns(message), price, chars, tokens, chars4, chars5, now),
        )
        index_message(db, db.last_insert_rowid(), message, session_id, session, now)
    db.execute("update sessions set active_at = ? where id = ?", (now, session_id))


class _Reach(NamedTuple):
    """How far back a tail goes: to a message number, and within limits."""

    session_id: str
    after: int
    max_tokens: int | None
    max_messages: int | None


def _tail(db: apsw.Connection, counter: Counter, reach: _Reach) -> Tail:
    """Read pages from the end until a limit is passed: the cost does not grow with the rest of the log."""
    total = _SUMS[counter.name]
    session_id, after, max_tokens, max_messages = reach
    folded = 0
    if after:
        at = f"select {total} from messages where session_id = ? and seq <= ? order by seq desc limit 1"
        folded = db.execute(at, (session_id, after)).get or 0
    query = (
        f"select {MESSAGE_COLUMNS}, tokens, seq, {total} from messages "
        "where session_id = ? and seq < ? and seq > ? order by seq desc limit ?"
    )
    rows: list[_Row] = []
    spent, before = 0, 1 << 62
    while True:
        page = list(db.execute(query, (session_id, before, after, _PAGE)))
        for row in page:
            rows.append(_row(row, counter))
            spent += rows[-1].entry.tokens
            if _passed(spent, max_tokens) or _passed(len(rows), max_messages):
                return _tail_of(rows, after, folded)
        if len(page) < _PAGE:
            return _tail_of(rows, after, folded)
        before = page[-1][-2]


class _Row(NamedTuple):
    """An entry with its number, and the tokens of all messages up to it."""

    entry: Entry
    seq: int
    total: int


def _row(row: Any, counter: Counter) -> _Row:
    # Tokens were counted when the message was written; counting characters now costs nothing.
    message = message_from(row[:9])
    return _Row(Entry(message, counter.message(message) if counter.chars_per_token else row[-3]), *row[-2:])


def _passed(amount: int, limit: int | None) -> bool:
    return limit is not None and amount > limit


def _tail_of(rows: list[_Row], after: int, folded: int) -> Tail:
    """Make a tail of rows that are sorted from the newest to the oldest."""
    if not rows:
        return Tail(messages_before=after, messages_folded=after, tokens_folded=folded)
    oldest = rows[-1]
    return Tail(
        entries=[row.entry for row in reversed(rows)],
        messages_before=oldest.seq - 1,
        tokens_before=oldest.total - oldest.entry.tokens - folded,
        messages_folded=after,
        tokens_folded=folded,
    )
