"""Conversions between values and columns."""

from __future__ import annotations

import json
import re
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from types import UnionType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import apsw

from weft.types.codec import dump_json, from_dict, to_dict
from weft.types.message import Message, ToolCall

MESSAGE_COLUMNS = (
    "role, content, tool_calls, tool_call_id, tool_name, timestamp, origin, parts, provider_data, outside, "
    "name"
)
_FIRST_SECOND = datetime.min.replace(tzinfo=UTC).timestamp()
_LAST_SECOND = datetime.max.replace(tzinfo=UTC, microsecond=0).timestamp()
_SURROGATE = re.compile("[\ud800-\udfff]")
T = TypeVar("T")


class _Ids:
    """Ids that sort in the order in which this process creates them: milliseconds, then random digits."""

    def __init__(self) -> None:
        self._lock, self._milliseconds, self._digits = threading.Lock(), 0, 0

    def __call__(self) -> str:
        with self._lock:
            now = int(time.time() * 1000)
            if now > self._milliseconds:
                self._milliseconds, self._digits = now, secrets.randbits(39)
            else:  # within one millisecond, or after the clock went back, the digits grow
                self._digits += 1 + secrets.randbits(16)
            return f"{self._milliseconds:011x}{self._digits:010x}"


new_id = _Ids()


def next_seq(table: str, *columns: str) -> str:
    """Return SQL for the next number of a sequence, for a statement inside a transaction.

    Rows are ordered by this number and not by a time, because a clock can go back.
    """
    newest = (f"coalesce((select max({column}) from {table}), 0)" for column in columns or ("seq",))
    return f"(max(0, {', '.join(newest)}) + 1)"


def mark_active(db: apsw.Connection, session_id: str, now: float) -> None:
    """Make a session the most recently active one, inside a transaction."""
    number = next_seq("sessions", "active_seq")
    query = f"update sessions set active_at = ?, active_seq = {number} where id = ?"
    db.execute(query, (now, session_id))


def storable(text: str) -> str:
    """Return text that UTF-8 can hold: a lone surrogate becomes the replacement character."""
    return _SURROGATE.sub("\ufffd", text)


def fetch(db: apsw.Connection, cls: type[T], query: str, *values: Any) -> list[T]:
    """Run a query and build a dataclass from each row. The columns are named after its fields.

    The values are those of the parameters, or one dict by their names.
    """
    cursor = db.execute(query, values[0] if values and isinstance(values[0], dict) else values)
    with suppress(apsw.ExecutionCompleteError):  # a query without rows has no description
        names = [name for name, _ in cursor.get_description()]
        return [record(cls, names, row) for row in cursor]
    return []


def record(cls: type[T], names: Sequence[str], row: Sequence[Any]) -> T:
    """Build a dataclass from named columns, each converted to the type of its field."""
    kind: Any = cls
    readers, columns = _readers(kind), zip(names, row, strict=True)
    return cls(**{name: None if value is None else readers[name](value) for name, value in columns})


@cache
def _readers(cls: Any) -> dict[str, Callable[[Any], Any]]:
    """Return the function that converts a column for each field: the field's type, or one of `_READERS`."""
    readers = {}
    for name, hint in get_type_hints(cls).items():
        kind = get_args(hint)[0] if isinstance(hint, UnionType) else hint  # of `X | None`, X
        kind = get_origin(kind) or kind
        readers[name] = _READERS.get(kind, kind)
    return readers


def moment(at: float | str) -> datetime:
    return datetime.fromisoformat(at) if isinstance(at, str) else datetime.fromtimestamp(at, UTC)


_READERS: dict[Any, Callable[[Any], Any]] = {
    datetime: moment,
    Literal: str,
    Mapping: json.loads,
    tuple: lambda text: tuple(json.loads(text)),
}


def stamp(when: datetime | None) -> float | None:
    """Return seconds since 1970. A time without a zone is UTC; one beyond the years of UTC is its limit."""
    if when is None:
        return None
    seconds = (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    return min(max(seconds, _FIRST_SECOND), _LAST_SECOND)


def message_columns(message: Message) -> tuple[Any, ...]:
    """Return the values for MESSAGE_COLUMNS; empty ones are null."""
    return (
        storable(message.role),
        storable(message.content),
        _json([to_dict(call) for call in message.tool_calls]),
        message.tool_call_id and storable(message.tool_call_id),
        message.tool_name and storable(message.tool_name),
        message.timestamp.isoformat() if message.timestamp else None,
        storable(message.origin),
        _json(list(message.parts)),
        _json(dict(message.provider_data)),
        _json(list(message.outside)),
        storable(message.name),
    )


def message_from(row: Sequence[Any]) -> Message:
    """Build a message from the values of MESSAGE_COLUMNS."""
    role, content, calls, call_id, tool_name, timestamp, origin, parts, data, outside, name = row
    if not (calls or call_id or tool_name or timestamp or parts or data or outside or name):
        return Message(role=role, content=content, origin=origin)
    return Message(
        role=role,
        content=content,
        tool_calls=tuple(from_dict(ToolCall, call, where="tool call") for call in _parsed(calls) or ()),
        tool_call_id=call_id,
        tool_name=tool_name,
        timestamp=datetime.fromisoformat(timestamp) if timestamp else None,
        origin=origin,
        parts=tuple(_parsed(parts) or ()),
        provider_data=_parsed(data) or {},
        outside=tuple(_parsed(outside) or ()),
        name=name or "",
    )


def _json(data: Sequence[Any] | Mapping[str, Any]) -> str | None:
    return dump_json(data) if data else None


def _parsed(text: str | None) -> Any:
    return json.loads(text) if text else None
