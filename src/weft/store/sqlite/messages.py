"""The message log: append-only, every message counted when it is written."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import apsw

from weft.errors import StoreError
from weft.offload import offloaded
from weft.store.sqlite.database import Repository
from weft.store.sqlite.epochs import end_epochs
from weft.store.sqlite.index import index_message
from weft.store.sqlite.rows import MESSAGE_COLUMNS, mark_active, message_columns, message_from, storable
from weft.tokens import COUNTERS, Counter, calls_json
from weft.types.codec import dump_json
from weft.types.message import Message
from weft.types.session import Entry, Fold, Tail

_FOLD_COLUMNS = (
    "last, text, strategy, model, origin, outside, outside_text, tokens_before, tokens_after, "
    "input_tokens, output_tokens, cached_tokens"
)
_FOLDS = f"select {_FOLD_COLUMNS}, created_at as at, removed_at from folds where session_id = ?"
_SUMS = {"exact": "sum_tokens", "chars/4": "sum_chars4", "chars/5": "sum_chars5"}


class SqliteMessages(Repository):
    async def append(self, session_id: str, *messages: Message) -> None:
        if messages:
            prices = await message_prices(messages)
            await self._write(lambda db: append_messages(db, session_id, messages, prices) and None)

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

    async def find_text(self, session_id: str, text: str, *, limit: int = 20) -> list[tuple[int, Message]]:
        query = (
            f"select seq, {MESSAGE_COLUMNS} from messages where session_id = ? "
            "and instr(lower(content), lower(?)) order by seq desc limit ?"
        )
        values = (session_id, storable(text), limit)
        rows: list[Any] = await self._read(lambda db: db.execute(query, values).fetchall())
        return [(seq, message_from(columns)) for seq, *columns in reversed(rows)]

    async def fold(self, session_id: str) -> Fold | None:
        query = f"{_FOLDS} and removed_at is null order by last desc limit 1"
        folds = await self._fetch(Fold, query, session_id)
        return folds[0] if folds else None

    async def list_folds(self, session_id: str) -> list[Fold]:
        return await self._fetch(Fold, f"{_FOLDS} order by last", session_id)

    async def add_fold(self, session_id: str, fold: Fold) -> None:
        values = {name: getattr(fold, name) for name in _FOLD_COLUMNS.split(", ")}
        values |= {name: storable(str(values[name])) for name in ("text", "outside_text", "model")}
        values |= {"outside": dump_json(list(fold.outside)), "session_id": session_id, "at": time.time()}
        marks = ", ".join(f":{name}" for name in _FOLD_COLUMNS.split(", "))
        query = (
            f"insert or replace into folds(session_id, created_at, {_FOLD_COLUMNS}) "
            f"values(:session_id, :at, {marks})"
        )
        await self._write(lambda db: db.execute(query, values) and None)

    async def remove_folds(self, session_id: str) -> int:
        def work(db: apsw.Connection) -> int:
            query = "update folds set removed_at = ? where session_id = ? and removed_at is null"
            db.execute(query, (time.time(), session_id))
            number = int(db.changes())
            end_epochs(db, "unfold", session_id)
            return number

        return await self._write(work)

    async def tail(
        self,
        session_id: str,
        counter: Counter,
        *,
        max_tokens: int | None,
        max_messages: int | None,
        after: int = 0,
    ) -> Tail:
        limits = (max_tokens, max_messages)
        return await self._lookup(lambda db: _tail(db, counter, session_id, after, limits))


async def message_prices(messages: Sequence[Message]) -> list[int]:
    """Count the tokens of messages before they are written: a transaction does not wait for that."""
    size = sum(len(message.content) for message in messages)
    return await offloaded(size, lambda: [COUNTERS["exact"].message(message) for message in messages])


def append_messages(
    db: apsw.Connection, session_id: str, messages: Sequence[Message], prices: Sequence[int]
) -> int:
    """Append messages inside a transaction, with their running sums, and index them.

    Returns the number of the last one.
    """
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
            f"sum_chars4, sum_chars5, created_at) values({', '.join('?' * 20)})",
            (session_id, seq, batch, *message_columns(message), price, chars, tokens, chars4, chars5, now),
        )
        index_message(db, db.last_insert_rowid(), message, session_id, session, now)
    mark_active(db, session_id, now)
    return int(seq)


def _tail(
    db: apsw.Connection, counter: Counter, session_id: str, after: int, limits: tuple[int | None, int | None]
) -> Tail:
    """Read from the end until a limit is passed: the cost does not grow with the rest of the log."""
    total, (max_tokens, max_messages) = _SUMS[counter.name], limits
    folded = 0
    if after:
        at = f"select {total} from messages where session_id = ? and seq <= ? order by seq desc limit 1"
        folded = db.execute(at, (session_id, after)).get or 0
    query = (
        f"select {MESSAGE_COLUMNS}, tokens, seq, {total} from messages "
        "where session_id = ? and seq > ? order by seq desc"
    )
    entries: list[Entry] = []
    spent, messages_before, tokens_before = 0, after, 0
    rows: Any = db.execute(query, (session_id, after))
    for *columns, tokens, seq, sum_tokens in rows:
        message = message_from(columns)
        # Tokens were counted when the message was written; counting characters now costs nothing.
        entry = Entry(message, counter.message(message) if counter.chars_per_token else tokens)
        entries.append(entry)
        spent += entry.tokens
        messages_before, tokens_before = seq - 1, sum_tokens - entry.tokens - folded
        if _passed(spent, max_tokens) or _passed(len(entries), max_messages):
            break
    rows.close()
    return Tail(
        entries=entries[::-1],
        messages_before=messages_before,
        tokens_before=tokens_before,
        messages_folded=after,
        tokens_folded=folded,
    )


def _passed(amount: int, limit: int | None) -> bool:
    return limit is not None and amount > limit
