"""Entries that are only ever added."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from weft.errors import InvalidEdit
from weft.memory.containers import Containers
from weft.memory.permission import Action
from weft.memory.schemas.base import Kind, check_list, content_of, ordered_keys, scalar
from weft.memory.schemas.editor import Editor, Section, exclusive
from weft.memory.schemas.map import check_fields
from weft.types.schema import LogEntrySchema, LogSchema
from weft.types.value import as_text


class LogKind(Kind[LogSchema]):
    """A log. The content is the newest entries with their times, newest first, as many as are shown."""

    operations = "append_log_entry"

    def content(self, schema: LogSchema, block: Containers, place: str) -> list[Any]:
        return block.newest(f"{place}entries", schema.display_limit)

    def render(self, schema: LogSchema, content: Any, *, bare: bool) -> str:
        order = tuple(field.name for field in schema.entry_schema.fields)
        newest = content[: schema.display_limit]
        return "\n".join(_line(entry["entry"], "" if bare else entry["at"], order) for entry in newest)

    def check(self, schema: LogSchema, value: Any, where: str) -> list[Any]:
        return [_check_entry(schema.entry_schema, item, where) for item in check_list(value, where)]


class LogEditor(Editor):
    """The operations on a log."""

    @exclusive
    def append_log_entry(
        self, entry: Any, is_system: bool = False, *, section: Section | None = None
    ) -> None:
        """Add an entry: named values, or words. It shows its `timestamp`, else when it was written."""
        part = self._open(LogSchema, Action.APPEND, section, is_system)
        new = _check_entry(part.schema.entry_schema, entry, f"The entry for {part.inline_name}")
        stored = stamped(new, now())
        newest = content_of(self._block, part.schema, part.place)
        self._fit(part, [stored, *newest][: part.schema.display_limit])
        root = f"{part.place}entries"
        self._block.splice_items(root, self._block.length(root), 0, [stored])

    @exclusive
    def log_entries(self, limit: int | None = None, *, section: Section | None = None) -> list[Any]:
        """Return the newest entries as they were written, newest first: by default those that are shown."""
        part = self._open(LogSchema, Action.READ, section, True)
        limit = part.schema.display_limit if limit is None else limit
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 0:
            raise InvalidEdit(f"{part.name} cannot give {limit!r} entries: ask for a whole number from 0 up.")
        return [entry["entry"] for entry in self._block.newest(f"{part.place}entries", limit)]


def now() -> datetime:
    """Return the time that a new entry gets."""
    return datetime.now(UTC)


def stamped(entry: Any, at: datetime) -> dict[str, Any]:
    """Return an entry as a log stores it: with the time at which it was written."""
    return {"at": at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), "entry": entry}


def _check_entry(schema: LogEntrySchema, value: Any, where: str) -> Any:
    """Return an entry as JSON data. Plain text will do where no field is required."""
    if isinstance(value, str) and not any(field.required for field in schema.fields):
        return as_text(value, where)
    return check_fields(schema.fields, value, where)


def _line(entry: Any, at: str, order: Sequence[str]) -> str:
    """Write an entry after its own time, or else after the time at which it was stored."""
    values = entry if isinstance(entry, Mapping) else {"": entry}
    stamp = scalar(values["timestamp"]) if values.get("timestamp") is not None else at
    words = [scalar(values[key]) for key in ordered_keys(values, order) if key != "timestamp"]
    return " ".join([f"[{stamp}]", *words] if stamp else words)
