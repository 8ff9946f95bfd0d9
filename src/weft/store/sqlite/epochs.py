"""Epochs: what each of them froze, and what was attached to its messages."""

from __future__ import annotations

import builtins
import json
import time
from dataclasses import replace
from functools import lru_cache
from typing import Any

import apsw

from weft.store.sqlite.database import Repository
from weft.store.sqlite.rows import moment, storable
from weft.types.codec import dump_json, from_dict, to_dict
from weft.types.epoch import Attachment, Epoch, EpochStep, EpochView
from weft.types.message import ToolDefinition

_COLUMNS = (
    "id, number, why, first, folded, masked, recipe, provider, model, ceiling, began_at, asked_at, "
    "json_remove(frozen, '$.tools') as frozen, frozen -> '$.tools' as tools"
)
_NAMES = ("id", "number", "why", "first", "folded", "masked", "recipe", "provider", "model", "limit")
_FROZEN = ("tools", "sections", "seen", "statics")
_REMEMBERED = 32
"""How many frozen parts are remembered as values, by their JSON."""


class SqliteEpochs(Repository):
    async def view(self, session_id: str) -> EpochView:
        return await self._lookup(lambda db: read_view(db, session_id))

    async def list(self, session_id: str) -> builtins.list[Epoch]:
        query = f"select {_COLUMNS} from epochs where session_id = ? order by id"
        return [_epoch(row) for row in await self._rows(query, session_id)]

    async def attachments(self, epoch_id: int) -> dict[int, Attachment]:
        return await self._lookup(lambda db: _attachments(db, epoch_id))

    async def end(self, why: str, session_id: str | None = None) -> int:
        return await self._write(lambda db: end_epochs(db, why, session_id))

    async def forget(self, why: str) -> None:
        await self._write(lambda db: forget_epochs(db, why))


def read_view(db: apsw.Connection, session_id: str) -> EpochView:
    running = "session_id = ? and ended_at is null"
    query = f"select {_COLUMNS} from epochs where {running} order by id desc limit 1"
    row = db.execute(query, (session_id,)).fetchone()
    forgets, cut_at = _forgets(db), _cut_at(db, session_id)
    if row is None:
        newest = "from epochs where session_id = ? order by id desc limit 1"
        query = f"select id, ended_why, number, ceiling, first, folded {newest}"
        none = (0, "", 0, 0, 1, 0)
        id_, why, number, limit, first, folded = db.execute(query, (session_id,)).fetchone() or none
        return EpochView(
            attachments=_attachments(db, id_) if why == "full" else {},
            ended_why=why,
            count=number,
            limit=limit,
            first=first,
            folded=folded,
            cut_at=cut_at,
            forgets=forgets,
        )
    attachments = _attachments(db, row[0])
    epoch = _epoch(row)
    return EpochView(
        epoch=epoch,
        attachments=attachments,
        count=epoch.number,
        limit=epoch.limit,
        first=epoch.first,
        folded=epoch.folded,
        cut_at=cut_at,
        forgets=forgets,
    )


def _cut_at(db: apsw.Connection, session_id: str) -> int:
    """Return the message with which the newest epoch began that shows less of the history; 0 without one."""
    newest = "select max(id) from epochs where session_id = ? and (why like 'fold%' or why like 'full%')"
    query = f"select coalesce(min(seq), 0) from attachments where epoch_id = ({newest})"
    return int(db.execute(query, (session_id,)).get)


def _attachments(db: apsw.Connection, epoch_id: Any) -> dict[int, Attachment]:
    query = "select seq, attachment from attachments where epoch_id = ? order by seq"
    rows: Any = db.execute(query, (epoch_id,))
    return {seq: _attachment(text) for seq, text in rows}


@lru_cache(maxsize=256)
def _attachment(text: str) -> Attachment:
    """Read an attachment: each is read again with every later turn of its epoch."""
    return Attachment.from_json(text)


def end_epochs(db: apsw.Connection, why: str, session_id: str | None = None) -> int:
    """End running epochs, inside a transaction: what they froze may no longer be shown."""
    query = "update epochs set ended_at = ?, ended_why = ? where ended_at is null"
    values: tuple[Any, ...] = (time.time(), why)
    if session_id is not None:
        query, values = f"{query} and session_id = ?", (*values, session_id)
    db.execute(query, values)
    return int(db.changes())


def forget_epochs(db: apsw.Connection, why: str) -> None:
    """End all epochs because something was taken out of memory, those of running turns among them."""
    db.execute("insert into forgets(why, at) values(?, ?)", (why, time.time()))
    end_epochs(db, why)


def save_step(db: apsw.Connection, session_id: str, step: EpochStep, first: int) -> None:
    """Store a new epoch, or the time of a request in a running one, and the attachments of its messages.

    `first` is the number of the first message of the exchange. An epoch in which something was forgotten
    while its turn ran is stored as ended.
    """
    epoch, now = step.epoch, time.time()
    if epoch.id:
        db.execute("update epochs set asked_at = ? where id = ?", (now, epoch.id))
        epoch_id = epoch.id
    else:
        end_epochs(db, epoch.why, session_id)
        frozen = dump_json({name: to_dict(getattr(epoch, name)) for name in _FROZEN})
        newest = "select coalesce(max(number), 0) from epochs where session_id = ?"
        count = db.execute(newest, (session_id,)).get
        db.execute(
            "insert into epochs(session_id, number, why, first, folded, masked, recipe, provider, model, "
            "ceiling, frozen, began_at, asked_at, ended_at, ended_why) "
            "values(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                session_id,
                count + 1,
                storable(epoch.why),
                *(epoch.first, epoch.folded, epoch.masked),
                *map(storable, (epoch.recipe, epoch.provider, epoch.model)),
                epoch.limit,
                storable(frozen),
                *(now, now),
                *((now, "forget") if _forgets(db) != step.forgets else (None, "")),
            ),
        )
        epoch_id = db.last_insert_rowid()
    for at, attachment in step.attachments.items():
        db.execute(
            "insert or replace into attachments(session_id, seq, epoch_id, attachment) values(?, ?, ?, ?)",
            (session_id, first + at, epoch_id, storable(attachment.to_json())),
        )


def _forgets(db: apsw.Connection) -> int:
    return int(db.execute("select coalesce(max(id), 0) from forgets").get)


def _epoch(row: Any) -> Epoch:
    *values, began_at, asked_at, frozen, tools = row
    named: dict[str, Any] = dict(zip(_NAMES, values, strict=True))
    return replace(
        _frozen(frozen),
        tools=_tools(tools or "[]"),
        began_at=moment(began_at),
        asked_at=moment(asked_at),
        **named,
    )


@lru_cache(maxsize=_REMEMBERED)
def _frozen(text: str) -> Epoch:
    """Read the frozen sections of an epoch: they stay the same for all its turns."""
    return from_dict(Epoch, json.loads(text), where="epoch")


@lru_cache(maxsize=_REMEMBERED)
def _tools(text: str) -> tuple[ToolDefinition, ...]:
    """Read frozen tools. Most sessions of a process have the same ones, and reading them takes long."""
    return tuple(from_dict(ToolDefinition, tool, where="tool") for tool in json.loads(text))
