"""Conversions between values and columns."""

from __future__ import annotations

import json
import re
import secrets
import threading
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from weft.types.codec import dump_json, from_dict, to_dict
from weft.types.message import Message, ToolCall

MESSAGE_COLUMNS = (
    "role, content, tool_calls, tool_call_id, tool_name, timestamp, origin, parts, provider_data"
)
_SURROGATE = re.compile("[\ud800-\udfff]")


class _Ids:
    """Ids that sort in the order in which this process makes them: milliseconds, then random digits."""

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


def storable(text: str) -> str:
    """Make text that UTF-8 can hold: a lone surrogate becomes the replacement character."""
    return _SURROGATE.sub("\ufffd", text)


def moment(stamp: float | None) -> datetime | None:
    return None if stamp is None else datetime.fromtimestamp(stamp, UTC)


def stamp(when: datetime | None) -> float | None:
    """Return seconds since 1970; a time without a zone is UTC."""
    if when is None:
        return None
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()


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
    )


def message_from(row: Sequence[Any]) -> Message:
    """Make a message of the values of MESSAGE_COLUMNS."""
    role, content, calls, call_id, tool_name, timestamp, origin, parts, data = row
    if not (calls or call_id or tool_name or timestamp or parts or data):
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
    )


def _json(data: Sequence[Any] | Mapping[str, Any]) -> str | None:
    return dump_json(data) if data else None


def _parsed(text: str | None) -> Any:
    return json.loads(text) if text else None
