"""Values that every vendor takes: text in UTF-8, data in JSON, names in allowed letters."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from weft.types.escape import sendable

_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}", re.ASCII)
_DEEPEST = 40
_write = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def text(value: str) -> str:
    """Replace NUL and lone surrogates in a text."""
    return sendable(value)[0]


def plain(value: Any, depth: int = 0) -> Any:
    """Return a value as JSON data. What JSON cannot hold becomes text; NaN and infinity become null."""
    if isinstance(value, str):
        return text(value)
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if depth >= _DEEPEST:
        return text(str(value)[:200])
    if isinstance(value, Mapping):
        return {text(str(key)): plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        items = sorted(value, key=repr) if isinstance(value, set | frozenset) else value
        return [plain(item, depth + 1) for item in items]
    return text(str(value))


def name(value: str) -> str:
    """Write a tool's name in the letters that all vendors take. Different names stay different."""
    if _NAME.fullmatch(value):
        return value
    return f"{_NOT_IN_NAMES.sub('_', value)[:48]}_{digest(value)}"


def digest(value: str) -> str:
    return sha256(value.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def compact(value: Any) -> str:
    """Write JSON as it is sent: without spaces, keys in their order. Equal values give equal bytes."""
    return _write(value)
