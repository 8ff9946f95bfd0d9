"""Items of lists and entries of logs, checked against their schema before they are written."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from weft.errors import LimitExceeded, StoreError, did_you_mean
from weft.types.schema import (
    BlockSchema,
    CompositeSchema,
    FieldDef,
    ListSchema,
    LogEntrySchema,
    LogSchema,
    MapSchema,
    TextSchema,
)
from weft.types.value import as_text, plain, typed


def shaped(schema: BlockSchema | None, value: Any, where: str) -> Any:
    """The value as JSON data, if it has the schema's shape; fields it lacks get their defaults.

    Raises:
        StoreError: it does not, or it cannot be stored.
    """
    if isinstance(schema, TextSchema):
        return as_text(value, where)
    if isinstance(schema, MapSchema):
        return _record(schema.fields, value, where)
    if isinstance(schema, ListSchema):
        items = _listed(value, where)
        if schema.max_items is not None and len(items) > schema.max_items:
            raise LimitExceeded(label=where, limit=schema.max_items, needed=len(items), unit="items")
        return [shaped(schema.item_schema, item, where) for item in items]
    if isinstance(schema, LogSchema):
        return [entry(schema.entry_schema, item, where) for item in _listed(value, where)]
    if isinstance(schema, CompositeSchema):
        return _sections(schema, value, where)
    return plain(value, where)


def stamped(entry: Any, at: datetime) -> dict[str, Any]:
    """An entry as a log keeps it: what was given, and when."""
    return {"at": at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), "entry": entry}


def entry(schema: LogEntrySchema, value: Any, where: str) -> Any:
    """A log entry as JSON data. Plain text will do where no field is required."""
    if isinstance(value, str) and not any(field.required for field in schema.fields):
        return as_text(value, where)
    return _record(schema.fields, value, where)


def splice(old: Sequence[Any], new: Sequence[Any]) -> tuple[int, int, Sequence[Any]]:
    """Where the two differ: from where, how much goes, what comes.

    One stretch, found by comparing slices: a character-wise difference of unrelated texts takes seconds.
    """
    if isinstance(old, str):
        start, end = _common(old, new)
    else:
        # 1, 1.0 and True are equal in Python, and not the same item.
        start, end = _common([_exact(item) for item in old], [_exact(item) for item in new])
    return start, len(old) - end - start, new[start : len(new) - end]


def _common(old: Sequence[Any], new: Sequence[Any]) -> tuple[int, int]:
    """How much the two share at the start, and of the rest at the end."""
    start, most = 0, min(len(old), len(new))
    while start < most:
        middle = (start + most + 1) // 2
        if old[start:middle] == new[start:middle]:
            start = middle
        else:
            most = middle - 1
    end, most = 0, min(len(old), len(new)) - start
    while end < most:
        middle = (end + most + 1) // 2
        if old[len(old) - middle : len(old) - end] == new[len(new) - middle : len(new) - end]:
            end = middle
        else:
            most = middle - 1
    return start, end


def _exact(item: Any) -> str:
    return json.dumps(item, sort_keys=True)


def _record(fields: Sequence[FieldDef], value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise StoreError(f"{where} must be a table of named values, not {value!r:.40}.")
    found: dict[str, Any] = plain(value, where)
    for field in fields:
        given = value.get(field.name)
        if given is not None:
            found[field.name] = typed(field.type, given, f"{where}.{field.name}")
        elif field.default is not None:
            found[field.name] = plain(field.default, where)
        elif field.required:
            raise StoreError(f"{where} lacks the field {field.name!r}: add it.")
    return found


def _sections(schema: CompositeSchema, value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise StoreError(f"{where} must be a table of sections, not {value!r:.40}.")
    known = {section.name: section.schema for section in schema.sections}
    for name in value:
        if name not in known:
            raise StoreError(f"{where} has no section {name!r}: {did_you_mean(str(name), known)}")
    return {name: shaped(known[name], part, f"{where}.{name}") for name, part in value.items()}


def _listed(value: Any, where: str) -> Sequence[Any]:
    if not isinstance(value, list | tuple):
        raise StoreError(f"{where} must be a list, not {value!r:.40}.")
    return value
