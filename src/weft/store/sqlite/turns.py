"""Turns: a message from its arrival until its answer is in the log, and the receipt."""

from __future__ import annotations

import builtins
import json
import time
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import apsw

from weft.errors import StoreError
from weft.store.process_id import is_running, this_process
from weft.store.rules import MOST_RESULTS, RESULT_SECONDS, is_interrupted
from weft.store.sqlite import mailbox
from weft.store.sqlite.database import Repository
from weft.store.sqlite.epochs import save_step
from weft.store.sqlite.messages import append_messages, message_prices
from weft.store.sqlite.receipts import pack, unpack
from weft.store.sqlite.requests import delete_requests, read_requests, read_sizes, save_requests
from weft.store.sqlite.rows import moment, new_id, next_seq, stamp, storable
from weft.store.sqlite.tasks import record_task_outcome
from weft.types.codec import dump_json
from weft.types.escape import sendable
from weft.types.message import Message
from weft.types.receipt import Receipt
from weft.types.sent import NO_RECORD, StoredRequest, TurnBrief, TurnRecord
from weft.types.session import OpenTurn, SideCall, TurnInfo

# Rows are in the order of their time. A few of the oldest are looked at whenever one is added: no save reads
# them all, since the time of a row stands behind its text, which may be long.
_OLD_RESULTS = """delete from results where rowid in (
    select rowid from (select rowid, created_at from results order by rowid limit 8) where created_at < ?)"""
_TOO_MANY_RESULTS = "delete from results where rowid <= (select max(rowid) from results) - ?"


_CALL_COLUMNS = (
    "session_id, kind, provider, model, input_tokens, output_tokens, cached_tokens, written_tokens, error"
)


_ENDED = "from turns where session_id = ?1 and state <> 'running'"
_INFO = """select id, session_id, {number} as number, state, created_at as at,
    coalesce(error, '') as error, first, substr(coalesce(text, (select content from messages
        where messages.session_id = turns.session_id and messages.seq = first), ''), 1, 200) as text"""
_NUMBER = f"(select count(*) {_ENDED} and seq <= (select seq from turns where id = ?2))"


class _Ending(NamedTuple):
    """How a turn ends: its state, the reply that goes out, and what is stored of it."""

    state: str
    reply: str
    receipt: Receipt | None = None
    error: str | None = None
    record: TurnRecord = NO_RECORD


class SqliteTurns(Repository):
    async def begin(
        self,
        session_id: str,
        text: str,
        *,
        inbox_id: str = "",
        is_known: bool = False,
        outside: Sequence[str] = (),
    ) -> str:
        turn_id, places = new_id(), storable(dump_json(list(outside)))
        row = (turn_id, session_id, storable(text), this_process(), time.time(), inbox_id or None, is_known)

        def work(db: apsw.Connection) -> None:
            db.execute(
                "insert into turns(id, session_id, state, text, owner, created_at, inbox_id, is_known, "
                f"outside, seq) values(?, ?, 'running', ?, ?, ?, ?, ?, ?, {next_seq('turns')})",
                (*row, places),
            )
            if inbox_id:
                mailbox.begin(db, inbox_id)

        await self._write(work)
        return turn_id

    async def step(self, turn_id: str, *messages: Message, inbox_ids: Sequence[str] = ()) -> None:
        rows = [storable(message.to_json()) for message in messages]

        def work(db: apsw.Connection) -> None:
            count = db.execute("select count(*) from turn_steps where turn_id = ?", (turn_id,)).get
            for seq, row in enumerate(rows, count + 1):
                db.execute(
                    "insert into turn_steps(turn_id, seq, message) values(?, ?, ?)", (turn_id, seq, row)
                )
            for inbox_id in inbox_ids:
                mailbox.answer(db, inbox_id, "")

        await self._write(work)

    async def finish(
        self,
        turn_id: str,
        receipt: Receipt,
        *messages: Message,
        reply: str = "",
        record: TurnRecord = NO_RECORD,
    ) -> None:
        await self._end(turn_id, _Ending("done", reply, receipt=receipt, record=record), messages)

    async def fail(
        self,
        turn_id: str,
        error: str,
        *messages: Message,
        reply: str = "",
        record: TurnRecord = NO_RECORD,
    ) -> None:
        await self._end(turn_id, _Ending("failed", reply, error=storable(error), record=record), messages)

    async def list_interrupted(self, session_id: str | None = None) -> list[OpenTurn]:
        query = (
            "select turns.id, session_id, turns.text, turns.created_at, owner, "
            "coalesce(origin, 'user'), is_known, turns.outside "
            "from turns left join inbox on inbox.id = inbox_id "
            "where turns.state = 'running' and session_id = coalesce(?, session_id) "
            "order by turns.seq"
        )
        steps = "select message from turn_steps where turn_id = ? order by seq"

        def work(db: apsw.Connection) -> list[OpenTurn]:
            rows: list[Any] = db.execute(query, (session_id,)).fetchall()
            return [
                OpenTurn(
                    id=turn_id,
                    session_id=session,
                    text=text,
                    origin=origin,
                    is_known=bool(is_known),
                    at=moment(began),
                    outside=tuple(json.loads(outside)),
                    steps=tuple(Message.from_json(str(step)) for (step,) in db.execute(steps, (turn_id,))),
                )
                for turn_id, session, text, began, owner, origin, is_known, outside in rows
                if is_interrupted(is_running(owner), began, time.time())
            ]

        return await self._read(work)

    async def settle(self, turn_id: str, *messages: Message, reply: str = "") -> bool:
        try:
            await self._end(turn_id, _Ending("interrupted", reply), messages)
        except StoreError:
            return False
        return True

    async def find_ratios(self, model: str, counter: str) -> dict[str, float]:
        query = "select script, ratio from models where model = ? and counter = ? and ratio is not null"
        return dict(await self._rows(query, storable(model), counter))

    async def find_window(self, model: str) -> int | None:
        query = "select window from models where model = ? and counter = '' and script = ''"
        return await self._value(int, query, model)

    async def save_window(self, model: str, window: int) -> None:
        query = (
            "insert into models(model, window) values(?, ?) "
            "on conflict(model, counter, script) do update set window = excluded.window"
        )
        await self._execute(query, storable(model), window)

    async def get(self, turn_id: str) -> Receipt:
        receipt = await self.find(turn_id)
        if receipt is None:
            raise StoreError(f"There is no turn {turn_id!r} with a receipt: `weft turns` lists them.")
        return receipt

    async def find(self, turn_id: str) -> Receipt | None:
        def work(db: apsw.Connection) -> Receipt | None:
            text = db.execute("select receipt from turns where id = ?", (storable(turn_id),)).get
            return None if text is None else unpack(db, text)

        return await self._read(work)

    async def page(
        self, session_id: str, *, limit: int = 100, before: int | None = None
    ) -> builtins.list[TurnInfo]:
        count = await self._value(int, f"select count(*) {_ENDED}", session_id) or 0
        last = count if before is None else min(max(before - 1, 0), count)
        first = max(last - limit, 0)
        return (await self._infos(session_id, first, last - first))[::-1]

    async def briefs(
        self, session_id: str, *, limit: int = 100, before: int | None = None
    ) -> builtins.list[TurnBrief]:
        infos = await self.page(session_id, limit=limit, before=before)

        def work(db: apsw.Connection) -> builtins.list[TurnBrief]:
            return [read_brief(db, info) for info in infos]

        return await self._read(work)

    async def find_at(
        self, senders: Collection[str], times: Collection[datetime]
    ) -> dict[datetime, TurnInfo]:
        query = (
            "select times.value, turns.id from turns join sessions on sessions.id = session_id "
            "join json_each(?2) as times on times.value between turns.created_at and turns.ended_at "
            "where channel || ':' || sender in (select value from json_each(?1))"
        )
        stamps = {at.timestamp(): at for at in times}
        rows: builtins.list[Any] = await self._read(
            lambda db: db.execute(query, (json.dumps([*senders]), json.dumps([*stamps]))).fetchall()
        )
        infos = {turn_id: await self.number(turn_id) for _, turn_id in rows}
        return {stamps[at]: info for at, turn_id in rows if (info := infos[turn_id]) is not None}

    async def number_at(self, session_id: str, message: int) -> int:
        query = f"select count(*) {_ENDED} and first <= ?2"
        return await self._value(int, query, session_id, message) or 0

    async def find_info(self, session_id: str, number: int) -> TurnInfo | None:
        infos = await self._infos(session_id, number - 1, 1) if number > 0 else ()
        return next(iter(infos), None)

    async def number(self, turn_id: str) -> TurnInfo | None:
        session_id = await self.find_session(turn_id)
        if session_id is None:
            return None
        query = f"{_INFO.format(number=_NUMBER)} {_ENDED} and id = ?2"
        return next(iter(await self._fetch(TurnInfo, query, session_id, turn_id)), None)

    async def find_prefix(
        self, prefix: str, *, session_id: str | None = None, limit: int = 10
    ) -> builtins.list[TurnInfo]:
        query = (
            "select id from turns where id between ?1 and ?1 || char(1114111) and state <> 'running' "
            "and session_id = coalesce(?2, session_id) order by id desc limit ?3"
        )
        rows = await self._rows(query, storable(prefix), session_id, limit)
        infos = [await self.number(turn_id) for (turn_id,) in rows]
        return [info for info in infos if info is not None]

    async def _infos(self, session_id: str, offset: int, limit: int) -> builtins.list[TurnInfo]:
        """Return turns of a session that ended, `limit` after the first `offset`, oldest first."""
        query = (
            "select id, session_id, ?3 + row_number() over (order by seq) as number, state, at, error, "
            f"first, text from ({_INFO.format(number='0')}, seq {_ENDED} order by seq limit ?2 offset ?3)"
        )
        return await self._fetch(TurnInfo, query, session_id, limit, offset)

    async def requests(self, turn_id: str) -> builtins.list[StoredRequest]:
        return await self._read(lambda db: read_requests(db, turn_id))

    async def delete_requests(self, before: float) -> int:
        return await self._write(lambda db: delete_requests(db, before))

    async def find_session(self, turn_id: str) -> str | None:
        return await self._value(str, "select session_id from turns where id = ?", storable(turn_id))

    async def list(self, session_id: str, *, limit: int = 100) -> list[str]:
        query = "select id from turns where session_id = ? and receipt is not null order by seq desc limit ?"
        return [turn_id for (turn_id,) in await self._rows(query, session_id, limit)]

    async def add_call(self, call: SideCall) -> None:
        query = (
            f"insert into calls({_CALL_COLUMNS}, at) "
            f"values({', '.join('?' * (_CALL_COLUMNS.count(',') + 1))}, ?)"
        )
        values = [getattr(call, name) for name in _CALL_COLUMNS.split(", ")]
        values = [storable(value) if isinstance(value, str) else value for value in values]
        at = stamp(call.at) or time.time()
        await self._execute(query, values[0] or None, *values[1:], at)

    async def list_calls(self, session_id: str) -> builtins.list[SideCall]:
        query = f"select {_CALL_COLUMNS}, at from calls where session_id = ? order by id"
        return await self._fetch(SideCall, query, session_id)

    async def failed_at(self, kind: str, model: str) -> datetime | None:
        query = "select error, at from calls where kind = ? and model = ? order by id desc limit 1"
        row = next(iter(await self._rows(query, kind, storable(model))), None)
        return moment(row[1]) if row and row[0] else None

    async def save_result(self, session_id: str, tool: str, content: str, *, outside: str = "") -> str:
        result_id, now = new_id(), time.time()
        query = (
            "insert into results(id, session_id, tool, content, created_at, outside) values(?, ?, ?, ?, ?, ?)"
        )

        def work(db: apsw.Connection) -> None:
            db.execute(_OLD_RESULTS, (now - RESULT_SECONDS,))
            text = sendable(content)[0]  # without NUL, which ends a text for SQLite
            db.execute(query, (result_id, session_id, storable(tool), text, now, storable(outside)))
            db.execute(_TOO_MANY_RESULTS, (MOST_RESULTS,))

        await self._write(work)
        return result_id

    async def read_result(
        self, session_id: str, result_id: str, offset: int, length: int
    ) -> tuple[str, int, str]:
        part = "substr(content, ?, ?), length(content), outside"
        query = f"select {part} from results where id = ? and session_id = ?"
        rows = await self._rows(query, offset + 1, length, result_id, session_id)
        if not rows:
            raise StoreError(
                f"There is no result {result_id!r} in this session: check the id, or call the tool again, "
                f"since results are kept for {RESULT_SECONDS // 86_400} days."
            )
        text, whole, outside = rows[0]
        return text, whole, outside

    async def _end(self, turn_id: str, ending: _Ending, messages: Sequence[Message]) -> None:
        prices = await message_prices(messages)

        def work(db: apsw.Connection) -> None:
            query = "select session_id, state, inbox_id from turns where id = ?"
            row: Any = db.execute(query, (turn_id,)).fetchone()
            session_id, state, inbox_id = row or ("", "", None)
            if state != "running":
                raise StoreError(f"The turn {turn_id!r} has ended already: nothing was written twice.")
            first = 0
            if messages:
                last = append_messages(db, session_id, messages, prices)
                first = last - len(messages) + 1
                if ending.record.step is not None:
                    save_step(db, session_id, ending.record.step, first)
            receipt = None if ending.receipt is None else pack(db, ending.receipt)
            db.execute(
                "update turns set state = ?, error = ?, receipt = ?, ended_at = ?, first = ?, "
                "text = iif(?, null, text) where id = ?",
                (ending.state, ending.error, receipt, time.time(), first, bool(messages), turn_id),
            )
            if inbox_id:
                failed = ending.state == "failed"
                again = record_task_outcome(db, inbox_id, failed=failed, now=time.time())
                mailbox.answer(db, inbox_id, "" if again else ending.reply)
            db.execute("delete from turn_steps where turn_id = ?", (turn_id,))
            save_requests(db, turn_id, ending.record.requests)
            if ending.receipt is not None:
                _learn(db, ending.receipt)

        await self._write(work)


def _learn(db: apsw.Connection, receipt: Receipt) -> None:
    """Store the ratio that a provider's report taught, for the script of the request."""
    if receipt.ratio is None or not receipt.model or not receipt.script:
        return
    query = (
        "insert into models(model, counter, script, ratio) values(?, ?, ?, ?) "
        "on conflict(model, counter, script) do update set ratio = excluded.ratio"
    )
    db.execute(query, (storable(receipt.model), receipt.counter, receipt.script, receipt.ratio))


def read_brief(db: apsw.Connection, info: TurnInfo) -> TurnBrief:
    """Read the receipt of a turn, and the sizes of its requests."""
    text, sizes = (
        db.execute("select receipt from turns where id = ?", (info.id,)).get,
        read_sizes(db, info.id),
    )
    size, shared = sizes[0] if sizes else (0, 0)
    return TurnBrief(
        info=info,
        receipt=None if text is None else unpack(db, text),
        rounds=len(sizes),
        bytes=size,
        shared_bytes=shared,
    )
