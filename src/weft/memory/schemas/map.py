"""Named and typed values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from weft.errors import InvalidEdit, PermissionDenied, did_you_mean
from weft.memory.containers import Containers
from weft.memory.diff import splice
from weft.memory.permission import Action
from weft.memory.schemas.base import Kind, content_of, scalar
from weft.memory.schemas.editor import Editor, Part, Section, exclusive
from weft.types.schema import READ_ONLY_MARK, FieldDef, MapSchema
from weft.types.value import as_count, as_text, plain, typed

_FIELD_OPERATIONS = {"list": "append_to_list_field or set_field", "counter": "increment_counter or set_field"}


class MapKind(Kind[MapSchema]):
    """Named values. The content is a dict of the fields that have a value."""

    operations = "set_field, set_text_field, append_to_list_field or increment_counter"

    def content(self, schema: MapSchema, block: Containers, place: str) -> dict[str, Any]:
        values = {field.name: _value(field, block, place) for field in schema.fields}
        return {name: value for name, value in values.items() if value is not None}

    def render(self, schema: MapSchema, content: Any, *, bare: bool) -> str:
        # An empty list has nothing to show.
        fields = [field for field in schema.fields if content.get(field.name) not in (None, [])]
        return "\n".join(_line(field, content[field.name]) for field in fields)

    def check(self, schema: MapSchema, value: Any, where: str) -> dict[str, Any]:
        return check_fields(schema.fields, value, where)

    def keys(self, schema: MapSchema) -> tuple[str, ...]:
        return tuple(field.name for field in schema.fields)


class MapEditor(Editor):
    """The operations on named values."""

    @exclusive
    def set_field(
        self, name: str, value: Any, is_system: bool = False, *, section: Section | None = None
    ) -> None:
        """Set a field to a value of its type. None takes the value away, unless the field is required."""
        part, field = self._field(name, Action.OVERWRITE, section, is_system)
        if value is None:
            _check_clearable(part, field)
        new: Any = None if value is None else typed(field.type, value, _where(part, field))
        content = content_of(self._block, part.schema, part.place)
        self._fit(part, {**content, name: field.default if new is None else new})
        if field.type == "counter":
            self._add(part, field, new - (content.get(name) or 0))
        elif field.type == "list":
            old = self._block.items(_root(part.place, field))
            self._splice(part, field, *splice(old, new))
        else:
            self._block.put_value(name, new, part.place)

    @exclusive
    def set_text_field(
        self, name: str, text: str, is_system: bool = False, *, section: Section | None = None
    ) -> None:
        """Set a field of the type text."""
        part, field = self._field(name, Action.OVERWRITE, section, is_system, "text")
        self.set_field(name, as_text(text, _where(part, field)), is_system, section=section)

    @exclusive
    def append_to_list_field(
        self, name: str, item: Any, is_system: bool = False, *, section: Section | None = None
    ) -> None:
        """Add an item to the end of a list field."""
        part, field = self._field(name, Action.APPEND, section, is_system, "list")
        new = plain(item, _where(part, field))
        content = content_of(self._block, part.schema, part.place)
        items, stored = content.get(name, []), self._block.items(_root(part.place, field))
        self._fit(part, {**content, name: [*items, new]})
        added = [new] if stored else [*items, new]  # the first item takes the default along
        self._splice(part, field, len(stored), 0, added)

    @exclusive
    def increment_counter(
        self, name: str, by: int | float = 1, is_system: bool = False, *, section: Section | None = None
    ) -> int | float:
        """Add to a counter. Returns what it counts then."""
        part, field = self._field(name, Action.OVERWRITE, section, is_system, "counter")
        content = content_of(self._block, part.schema, part.place)
        step = as_count(by, _where(part, field))
        new = as_count((content.get(name) or 0) + step, _where(part, field))
        self._fit(part, {**content, name: new})
        self._add(part, field, step)
        return new

    def set_field_in_section(self, field: str, value: Any, section: Section, is_system: bool = False) -> None:
        """Set a field of a section that is a map."""
        self.set_field(field, value, is_system, section=section)

    def _field(
        self, name: str, action: Action, section: Section | None, is_system: bool, kind: str | None = None
    ) -> tuple[Part[MapSchema], FieldDef]:
        part = self._open(MapSchema, action, section, is_system)
        fields = {field.name: field for field in part.schema.fields}
        if name not in fields:
            raise InvalidEdit(f"{part.name} has no field {name!r}: {did_you_mean(str(name), fields)}")
        field = fields[name]
        if field.read_only and not is_system:
            raise PermissionDenied(f"{_where(part, field)} is read-only: only the system may write it.")
        if kind is not None and field.type != kind:
            right = _FIELD_OPERATIONS.get(field.type, "set_field")
            raise InvalidEdit(f"{_where(part, field)} is of the type {field.type}: use {right}.")
        return part, field

    def _splice(
        self, part: Part[MapSchema], field: FieldDef, start: int, removed: int, added: Sequence[Any]
    ) -> None:
        self._mark(part, field)
        self._block.splice_items(_root(part.place, field), start, removed, added)

    def _add(self, part: Part[MapSchema], field: FieldDef, by: float) -> None:
        self._mark(part, field)
        self._block.add_to_counter(_root(part.place, field), by)

    def _mark(self, part: Part[MapSchema], field: FieldDef) -> None:
        """Note that a list or a counter was set, once: it may be empty or zero and still be there."""
        if self._block.value(field.name, part.place) is None:
            self._block.put_value(field.name, True, part.place)


def check_fields(fields: Sequence[FieldDef], value: Any, where: str) -> dict[str, Any]:
    """Return named values as JSON data, each of its field's type; missing ones get their defaults."""
    if not isinstance(value, Mapping):
        raise InvalidEdit(f"{where} must be a table of named values, not {value!r:.40}.")
    record: dict[str, Any] = plain(value, where)
    for field in fields:
        if value.get(field.name) is not None:
            record[field.name] = typed(field.type, value[field.name], f"{where}.{field.name}")
        elif field.default is not None:
            record[field.name] = plain(field.default, where)
        elif field.required:
            raise InvalidEdit(f"{where} lacks the field {field.name!r}: add it.")
    return record


def _value(field: FieldDef, block: Containers, place: str) -> Any:
    """Read a field's value, else its default, else None."""
    own = block.value(field.name, place)
    if field.type == "counter":
        counted = block.count(_root(place, field))
        if own is None and not counted:
            return field.default
        total = counted + (field.default or 0)
        return int(total) if total.is_integer() else total
    if field.type == "list":
        items = block.items(_root(place, field))
        return list(field.default or ()) or None if own is None and not items else items
    # A mark that a list or a counter left before the schema changed is no value.
    is_absent = own is None or (own is True and field.type != "boolean")
    return field.default if is_absent else own


def _line(field: FieldDef, value: Any) -> str:
    head = f"{field.name}{READ_ONLY_MARK if field.read_only else ''}:"
    if isinstance(value, list):
        return "\n".join([head, *(f"- {scalar(item)}" for item in value)])
    return f"{head} {scalar(value)}"


def _root(place: str, field: FieldDef) -> str:
    return f"{place}{field.type}:{quote(field.name, safe='')}"


def _where(part: Part[MapSchema], field: FieldDef) -> str:
    return f"The field {field.name!r} of {part.inline_name}"


def _check_clearable(part: Part[MapSchema], field: FieldDef) -> None:
    if field.required:
        raise InvalidEdit(f"{_where(part, field)} is required: give it another value instead.")
    if field.type in ("list", "counter"):
        empty = "[]" if field.type == "list" else "0"
        raise InvalidEdit(f"{_where(part, field)} cannot be taken away: set it to {empty}.")
