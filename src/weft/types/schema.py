"""The shapes a memory block can have: text, map, list, log, and a composite of them.

A schema says what may be written and how it is shown. It holds no content, and changing it changes none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, get_args

from weft.errors import StoreError, did_you_mean
from weft.types.codec import from_dict, to_dict
from weft.types.value import FieldType, as_text, typed

FIELD_TYPES: tuple[str, ...] = get_args(FieldType)
MAX_NESTED = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Viewport:
    """The lines of a long text that are shown. Lines are counted from 1."""

    start_line: int
    display_lines: int

    def __post_init__(self) -> None:
        _at_least_one(self.start_line, "A viewport's start_line")
        _at_least_one(self.display_lines, "A viewport's display_lines")


@dataclass(frozen=True, slots=True, kw_only=True)
class TextSchema:
    """Free text."""

    viewport: Viewport | None = None

    def __post_init__(self) -> None:
        if self.viewport is not None and not isinstance(self.viewport, Viewport):
            raise StoreError(f"A viewport cannot be {self.viewport!r}: give a Viewport.")


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldDef:
    """One named value of a map or of a log entry.

    A `default` is shown while the field has no value of its own; a `required` field cannot be cleared.
    """

    name: str
    type: FieldType = "text"
    description: str = ""
    required: bool = False
    default: Any = None
    read_only: bool = False

    def __post_init__(self) -> None:
        _check_name(self.name, "A field")
        if self.type not in FIELD_TYPES:
            hint = did_you_mean(str(self.type), FIELD_TYPES)
            raise StoreError(f"The field {self.name!r} cannot be of the type {self.type!r}: {hint}")
        if self.default is not None:
            default = typed(self.type, self.default, f"The default of the field {self.name!r}")
            object.__setattr__(self, "default", default)


@dataclass(frozen=True, slots=True, kw_only=True)
class MapSchema:
    """Named and typed values, shown in this order."""

    fields: tuple[FieldDef, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "fields", _named_parts(self.fields, FieldDef, "field"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ListSchema:
    """Items in an order of their own. Without an `item_schema` an item is any JSON value."""

    item_schema: BlockSchema | None = None
    max_items: int | None = None

    def __post_init__(self) -> None:
        if self.item_schema is not None:
            _check_schema(self.item_schema, "The items of a list")
        if self.max_items is not None:
            _at_least_one(self.max_items, "A list's max_items")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntrySchema:
    """What an entry of a log should have; other keys are welcome and shown too."""

    fields: tuple[FieldDef, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "fields", _named_parts(self.fields, FieldDef, "field"))


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSchema:
    """Entries that are only ever added. `display_limit` bounds what is shown, never what is kept."""

    display_limit: int
    entry_schema: LogEntrySchema = field(default_factory=LogEntrySchema)

    def __post_init__(self) -> None:
        _at_least_one(self.display_limit, "A log's display_limit")
        if not isinstance(self.entry_schema, LogEntrySchema):
            raise StoreError(f"A log's entry_schema cannot be {self.entry_schema!r}: give a LogEntrySchema.")


@dataclass(frozen=True, slots=True, kw_only=True)
class CompositeSection:
    """One part of a composite, with a schema of its own."""

    name: str
    schema: BlockSchema
    description: str = ""
    read_only: bool = False

    def __post_init__(self) -> None:
        _check_name(self.name, "A section")
        _check_schema(self.schema, f"The section {self.name!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class CompositeSchema:
    """Named sections under one label."""

    sections: tuple[CompositeSection, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "sections", _named_parts(self.sections, CompositeSection, "section"))


BlockSchema: TypeAlias = TextSchema | MapSchema | ListSchema | LogSchema | CompositeSchema

KINDS: Mapping[str, type[BlockSchema]] = {
    "text": TextSchema,
    "map": MapSchema,
    "list": ListSchema,
    "log": LogSchema,
    "composite": CompositeSchema,
}


def kind_of(schema: BlockSchema) -> str:
    """The name of the schema's shape: text, map, list, log or composite."""
    return next(kind for kind, cls in KINDS.items() if isinstance(schema, cls))


def schema_to_dict(schema: BlockSchema) -> dict[str, Any]:
    """Plain JSON data for a schema; what holds its default is left out."""
    data: dict[str, Any] = {"kind": kind_of(schema)}
    if isinstance(schema, ListSchema):
        if schema.item_schema is not None:
            data["item_schema"] = schema_to_dict(schema.item_schema)
        if schema.max_items is not None:
            data["max_items"] = schema.max_items
        return data
    if isinstance(schema, CompositeSchema):
        if schema.sections:
            data["sections"] = [_section_to_dict(section) for section in schema.sections]
        return data
    return {**data, **to_dict(schema)}


def schema_from_dict(data: Any) -> BlockSchema:
    """The schema that `schema_to_dict` wrote.

    Raises:
        StoreError: the data is not a schema; the sentence names the place and what would be right.
    """
    return _schema(data, "The schema", 0)


def _section_to_dict(section: CompositeSection) -> dict[str, Any]:
    data: dict[str, Any] = {"name": section.name, "schema": schema_to_dict(section.schema)}
    if section.description:
        data["description"] = section.description
    if section.read_only:
        data["read_only"] = True
    return data


def _schema(data: Any, where: str, depth: int) -> BlockSchema:
    if not isinstance(data, Mapping):
        raise StoreError(f"{where} must be a table with the key 'kind', not {data!r:.40}.")
    if depth > MAX_NESTED:
        raise StoreError(f"{where} is nested more than {MAX_NESTED} levels deep: make it flatter.")
    kind = data.get("kind")
    if kind not in list(KINDS):
        raise StoreError(f"{where} cannot be of the kind {kind!r:.40}: {did_you_mean(str(kind), KINDS)}")
    rest = {key: value for key, value in data.items() if key != "kind"}
    if kind == "list":
        return _list(rest, where, depth)
    if kind == "composite":
        _only(rest, {"sections"}, where)
        sections = _sequence(rest.get("sections", ()), f"{where}.sections")
        parts = (_section(s, f"{where}.sections[{at}]", depth) for at, s in enumerate(sections))
        return CompositeSchema(sections=tuple(parts))
    return from_dict(KINDS[kind], rest, where=where, unknown="refuse", error=StoreError)


def _list(data: Mapping[str, Any], where: str, depth: int) -> ListSchema:
    _only(data, {"item_schema", "max_items"}, where)
    item = data.get("item_schema")
    return ListSchema(
        item_schema=None if item is None else _schema(item, f"{where}.item_schema", depth + 1),
        max_items=data.get("max_items"),
    )


def _section(data: Any, where: str, depth: int) -> CompositeSection:
    if not isinstance(data, Mapping):
        raise StoreError(f"{where} must be a table with a name and a schema, not {data!r:.40}.")
    _only(data, {"name", "schema", "description", "read_only"}, where)
    for key in ("name", "schema"):
        if key not in data:
            raise StoreError(f"{where} lacks the key {key!r}: add it.")
    description, read_only = data.get("description", ""), data.get("read_only", False)
    if not isinstance(read_only, bool):
        raise StoreError(f"{where}.read_only must be true or false, not {read_only!r:.40}.")
    return CompositeSection(
        name=data["name"],
        schema=_schema(data["schema"], f"{where}.schema", depth + 1),
        description=as_text(description, f"{where}.description"),
        read_only=read_only,
    )


def _only(data: Mapping[str, Any], known: set[str], where: str) -> None:
    for key in data:
        if key not in known:
            raise StoreError(f"{where} has an unknown key {key!r}: {did_you_mean(str(key), known)}")


def _sequence(data: Any, where: str) -> Sequence[Any]:
    if not isinstance(data, list | tuple):
        raise StoreError(f"{where} must be a list, not {data!r:.40}.")
    return data


def _check_name(name: Any, what: str) -> None:
    """A name is one line of text: it stands in headings, where a second line could pass for content."""
    as_text(name, f"{what}'s name")
    if not name.strip() or name != name.strip() or len(name.splitlines()) > 1:
        raise StoreError(f"{what} cannot be named {name!r:.60}: a name is one line without spaces around it.")


def _check_schema(schema: Any, what: str) -> None:
    if not isinstance(schema, tuple(KINDS.values())):
        raise StoreError(f"{what} cannot have the schema {schema!r:.60}: give one such as TextSchema().")


def _named_parts(given: Any, cls: type[Any], what: str) -> tuple[Any, ...]:
    """The parts as a tuple, all of one class and each with a name of its own."""
    if not isinstance(given, Iterable) or isinstance(given, str | Mapping):
        raise StoreError(f"The {what}s of a schema must be a list, not {given!r:.40}.")
    parts, seen = tuple(given), set()
    for part in parts:
        if not isinstance(part, cls):
            raise StoreError(f"A {what} of a schema cannot be {part!r:.60}: give a {cls.__name__}.")
        if part.name in seen:
            raise StoreError(f"The {what} {part.name!r} is defined twice: rename one of them.")
        seen.add(part.name)
    return parts


def _at_least_one(value: Any, what: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise StoreError(f"{what} cannot be {value!r:.40}: give a whole number from 1 up.")
