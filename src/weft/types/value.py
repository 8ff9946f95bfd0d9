"""Checks of the values that a memory block can hold: JSON data.

The document behind a block has no rollback, and it silently changes what it cannot hold: a number beyond 64
bits becomes a decimal, half a character becomes question marks. So every value is checked first.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Literal

from weft.errors import InvalidEdit
from weft.types.codec import kind_name

FieldType = Literal["text", "number", "boolean", "list", "timestamp", "counter"]

MAX_DEPTH = 32
MAX_COUNT = 2**53
"""Counters are decimals inside: beyond this, adding one changes nothing."""

_SURROGATE = re.compile("[\ud800-\udfff]")
_MAX_INT = 2**63


def plain(value: Any, where: str, *, depth: int = 0) -> Any:
    """Return a copy of the value as JSON data: tuples become lists, dates become ISO 8601 text.

    Raises:
        InvalidEdit: the value, or something inside it, cannot be stored.
    """
    if depth > MAX_DEPTH:
        raise InvalidEdit(f"{where} is nested more than {MAX_DEPTH} levels deep: make it flatter.")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return as_text(value, where)
    if isinstance(value, int | float):
        return as_number(value, where)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {_key(k, where): plain(v, f"{where}.{k}", depth=depth + 1) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item, where, depth=depth + 1) for item in value]
    raise InvalidEdit(f"{where} cannot hold {type(value).__name__}: give text, a number, a list or a table.")


def as_text(value: Any, where: str) -> str:
    """Return the value if it is text that can be stored."""
    if not isinstance(value, str):
        raise InvalidEdit(f"{where} must be text, not {kind_name(value)}.")
    if _SURROGATE.search(value):
        raise InvalidEdit(f"{where} holds half a character (a lone surrogate): remove it.")
    return str(value)


def as_number(value: Any, where: str) -> int | float:
    """Return the value if it is a number that can be stored."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidEdit(f"{where} must be a number, not {kind_name(value)}.")
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidEdit(f"{where} cannot be {value}: give a finite number.")
        return float(value)
    if not -_MAX_INT <= value < _MAX_INT:
        raise InvalidEdit(f"{where} is too large a number: 64 bits are the most.")
    return int(value)


def as_count(value: Any, where: str) -> int | float:
    """Return the value if a counter can hold it."""
    number = as_number(value, where)
    if abs(number) > MAX_COUNT:
        raise InvalidEdit(f"{where} is too large for a counter: {MAX_COUNT} is the most.")
    return number


def typed(kind: FieldType, value: Any, where: str) -> Any:
    """Return the value as JSON data if it is of the field's type.

    Raises:
        InvalidEdit: it is not, or it cannot be stored.
    """
    return _CHECKS[kind](value, where)


def _boolean(value: Any, where: str) -> bool:
    if not isinstance(value, bool):
        raise InvalidEdit(f"{where} must be true or false, not {kind_name(value)}.")
    return value


def _list(value: Any, where: str) -> Any:
    if not isinstance(value, list | tuple):
        raise InvalidEdit(f"{where} must be a list, not {kind_name(value)}.")
    return plain(value, where)


def _timestamp(value: Any, where: str) -> str:
    """Return ISO 8601 text as it was written."""
    if isinstance(value, datetime):
        return value.isoformat()
    try:
        datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise InvalidEdit(f"{where} must be a date and time such as 2026-11-15T20:30:00Z.") from None
    return str(value)


def _key(key: Any, where: str) -> str:
    if not isinstance(key, str):
        raise InvalidEdit(f"{where} has the key {key!r}: keys must be text.")
    return as_text(key, f"A key of {where}")


_CHECKS: Mapping[str, Callable[[Any, str], Any]] = {
    "text": as_text,
    "number": as_number,
    "boolean": _boolean,
    "list": _list,
    "timestamp": _timestamp,
    "counter": as_count,
}
