"""A block's content as the text a model reads. Pure: a schema and plain content in, text out.

The content of a text is a str, of a map a dict of the values it has, of a list a list, of a log its entries
newest first with their times, and of a composite a dict of its sections' contents.

What was written cannot look like what is ours: the lines of a value are indented below its first, and a line
like a section's header gains a backslash.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from weft.types.schema import (
    BlockSchema,
    CompositeSchema,
    FieldDef,
    ListSchema,
    LogSchema,
    MapSchema,
    TextSchema,
    Viewport,
)

_READ_ONLY = " [read-only]"
_HEADER_LIKE = re.compile(r"^\\*=== .* ===\s*$", re.MULTILINE)
_BREAK = re.compile(r"\r\n|\r|\n")


def render(schema: BlockSchema, content: Any, *, bare: bool = False) -> str:
    """The content as text; `bare` is without what we add: no viewport's cut, no time that a log was given."""
    if isinstance(schema, TextSchema):
        text = str(content)
        return text if bare or schema.viewport is None else _window(text, schema.viewport)
    if isinstance(schema, MapSchema):
        return "\n".join(_field(field, content[field.name]) for field in _shown(schema.fields, content))
    if isinstance(schema, ListSchema):
        order = _names(schema.item_schema)
        return "\n".join(_item(at, item, order) for at, item in enumerate(content, 1))
    if isinstance(schema, LogSchema):
        order = tuple(field.name for field in schema.entry_schema.fields)
        shown = content[: schema.display_limit]
        return "\n".join(_entry(kept["entry"], "" if bare else kept["at"], order) for kept in shown)
    return _composite(schema, content, bare=bare)


def measure(schema: BlockSchema, content: Any) -> int:
    """How many characters of a block's limit the content takes: its text without what we add."""
    return len(render(schema, content, bare=True))


def _window(text: str, viewport: Viewport) -> str:
    if not text:
        return ""
    lines = text.removesuffix("\n").split("\n")
    first = viewport.start_line
    last = min(first + viewport.display_lines - 1, len(lines))
    if first > len(lines):
        return f"[Showing no lines of {len(lines)}: the viewport starts at line {first}]"
    return "\n".join([f"[Showing lines {first}-{last} of {len(lines)}]", *lines[first - 1 : last]])


def _shown(fields: Sequence[FieldDef], content: Mapping[str, Any]) -> list[FieldDef]:
    """The fields that have a value. An empty list has none to show."""
    return [field for field in fields if content.get(field.name) not in (None, [])]


def _field(field: FieldDef, value: Any) -> str:
    head = f"{field.name}{_READ_ONLY if field.read_only else ''}:"
    if isinstance(value, list):
        return "\n".join([head, *(f"- {_scalar(item)}" for item in value)])
    return f"{head} {_scalar(value)}"


def _item(at: int, item: Any, order: Sequence[str]) -> str:
    if not isinstance(item, Mapping):
        return f"{at}. {_scalar(item)}"
    done = item.get("done")
    if isinstance(done, bool):
        shown = _pairs({key: value for key, value in item.items() if key != "done"}, order)
        return f"[{'x' if done else ' '}] {shown}".rstrip()
    return f"{at}. {_pairs(item, order)}".rstrip()


def _pairs(item: Mapping[str, Any], order: Sequence[str]) -> str:
    """`key: value` pairs; a lone value needs no key."""
    keys = _ordered(item, order)
    if len(keys) == 1:
        return _scalar(item[keys[0]])
    return ", ".join(f"{key}: {_scalar(item[key])}" for key in keys)


def _entry(entry: Any, at: str, order: Sequence[str]) -> str:
    """An entry behind its own time, else behind the one at which it was written."""
    values = entry if isinstance(entry, Mapping) else {"": entry}
    stamp = _scalar(values["timestamp"]) if values.get("timestamp") is not None else at
    shown = [_scalar(values[key]) for key in _ordered(values, order) if key != "timestamp"]
    return " ".join([f"[{stamp}]", *shown] if stamp else shown)


def _composite(schema: CompositeSchema, content: Mapping[str, Any], *, bare: bool) -> str:
    parts = []
    for section in schema.sections:
        parts.append(f"=== {section.name}{_READ_ONLY if section.read_only else ''} ===")
        body = render(section.schema, content[section.name], bare=bare)
        if not isinstance(section.schema, CompositeSchema):  # whose headers are ours
            body = _HEADER_LIKE.sub(r"\\\g<0>", body)
        if body:
            parts.append(body)
    return "\n\n".join(parts)


def _names(schema: BlockSchema | None) -> tuple[str, ...]:
    return tuple(field.name for field in schema.fields) if isinstance(schema, MapSchema) else ()


def _ordered(values: Mapping[str, Any], order: Sequence[str]) -> list[str]:
    """The keys that have a value: as defined, then by name, because a stored table has no order."""
    known = [key for key in order if values.get(key) is not None]
    return known + sorted(key for key, value in values.items() if value is not None and key not in order)


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        return _BREAK.sub(r"\g<0>  ", value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e16:
        return str(int(value))
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
