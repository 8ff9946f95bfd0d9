"""The shapes a memory block can have: text, map, list, log, and a composite of them.

A schema says what may be written and how it is shown. It holds no content, and changing it changes none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, cast, get_args

from weft.errors import InvalidEdit, did_you_mean
from weft.types.codec import Tagged, from_dict, to_dict
from weft.types.value import FieldType, as_text, typed

FIELD_TYPES: tuple[str, ...] = get_args(FieldType)
READ_ONLY_MARK = " [read-only]"
DISPLAY_LIMIT = 20
"""The entries that a log shows if nothing else was said."""


class BlockSchema(Tagged):
    """The shape of a memory block. A subclass with a `kind` of its own is another shape."""

    __slots__ = ()
    KINDS: ClassVar[dict[str, type[BlockSchema]]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Viewport:
    """The lines of a long text that are shown. Lines are counted from 1."""

    start_line: int
    display_lines: int

    def __post_init__(self) -> None:
        _at_least_one(self.start_line, "A viewport's start_line")
        _at_least_one(self.display_lines, "A viewport's display_lines")


@dataclass(frozen=True, slots=True, kw_only=True)
class TextSchema(BlockSchema):
    """Free text."""

    kind = "text"
    viewport: Viewport | None = None

    def __post_init__(self) -> None:
        if self.viewport is not None and not isinstance(self.viewport, Viewport):
            raise InvalidEdit(f"A viewport cannot be {self.viewport!r}: give a Viewport.")


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
            raise InvalidEdit(f"The field {self.name!r} cannot be of the type {self.type!r}: {hint}")
        if self.default is not None:
            default = typed(self.type, self.default, f"The default of the field {self.name!r}")
            object.__setattr__(self, "default", default)


@dataclass(frozen=True, slots=True, kw_only=True)
class MapSchema(BlockSchema):
    """Named and typed values, shown in this order."""

    kind = "map"
    fields: tuple[FieldDef, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "fields", _named_parts(self.fields, FieldDef, "field"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ListSchema(BlockSchema):
    """Items in an order of their own. Without an `item_schema` an item is any JSON value."""

    kind = "list"
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
class LogSchema(BlockSchema):
    """Entries that are only ever added. `display_limit` bounds what is shown, never what is kept."""

    kind = "log"
    display_limit: int
    entry_schema: LogEntrySchema = field(default_factory=LogEntrySchema)

    def __post_init__(self) -> None:
        _at_least_one(self.display_limit, "A log's display_limit")
        if not isinstance(self.entry_schema, LogEntrySchema):
            raise InvalidEdit(f"A log's entry_schema cannot be {self.entry_schema!r}: give a LogEntrySchema.")


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
class CompositeSchema(BlockSchema):
    """Named sections under one label."""

    kind = "composite"
    sections: tuple[CompositeSection, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "sections", _named_parts(self.sections, CompositeSection, "section"))


def make_schema(kind: str, parts: Iterable[str] = ()) -> BlockSchema:
    """Make a schema from a kind and the names of its parts, as people and models write them.

    A part is `NAME` or `NAME:TYPE`: a field of a map, of a list's items or of a log's entries, with the type
    of its value; or a section of a composite, with its kind.

    Raises:
        InvalidEdit: there is no such kind or type, or a part has no name.
    """
    named = [(name.strip(), type_.strip()) for name, _, type_ in (part.partition(":") for part in parts)]
    if kind == "composite":
        sections = (CompositeSection(name=name, schema=make_schema(type_ or "text")) for name, type_ in named)
        return CompositeSchema(sections=tuple(sections))
    fields = tuple(FieldDef(name=name, type=cast("FieldType", type_ or "text")) for name, type_ in named)
    match kind:
        case "text" if not fields:
            return TextSchema()
        case "map":
            return MapSchema(fields=fields)
        case "list":
            return ListSchema(item_schema=MapSchema(fields=fields) if fields else None)
        case "log":
            return LogSchema(display_limit=DISPLAY_LIMIT, entry_schema=LogEntrySchema(fields=fields))
        case "text":
            raise InvalidEdit("A text has no fields: make it a map, or leave them out.")
    kinds = ("text", "map", "list", "log", "composite")
    raise InvalidEdit(f"There is no kind of block {kind!r}: {did_you_mean(kind, kinds)}")


def schema_to_dict(schema: BlockSchema) -> dict[str, Any]:
    """Return plain JSON data for a schema; what holds its default is left out."""
    data: dict[str, Any] = to_dict(schema)
    return data


def schema_from_dict(data: Any) -> BlockSchema:
    """Return the schema that `schema_to_dict` wrote.

    Raises:
        InvalidEdit: the data is not a schema; the sentence names the place and what would be right.
    """
    return from_dict(BlockSchema, data, where="The schema", unknown="refuse", error=InvalidEdit)


def _check_name(name: Any, what: str) -> None:
    """Check that a name is one line: in a heading, a second line could pass for content."""
    as_text(name, f"{what}'s name")
    if not name.strip() or name != name.strip() or len(name.splitlines()) > 1:
        raise InvalidEdit(
            f"{what} cannot be named {name!r:.60}: a name is one line without spaces around it."
        )


def _check_schema(schema: Any, what: str) -> None:
    if not isinstance(schema, BlockSchema):
        raise InvalidEdit(f"{what} cannot have the schema {schema!r:.60}: give one such as TextSchema().")


def _named_parts(values: Any, cls: type[Any], what: str) -> tuple[Any, ...]:
    """Return the parts as a tuple if all are of one class and each has a name of its own."""
    if not isinstance(values, Iterable) or isinstance(values, str | Mapping):
        raise InvalidEdit(f"The {what}s of a schema must be a list, not {values!r:.40}.")
    parts, names = tuple(values), set()
    for part in parts:
        if not isinstance(part, cls):
            raise InvalidEdit(f"A {what} of a schema cannot be {part!r:.60}: give a {cls.__name__}.")
        if part.name in names:
            raise InvalidEdit(f"The {what} {part.name!r} is defined twice: rename one of them.")
        names.add(part.name)
    return parts


def _at_least_one(value: Any, what: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InvalidEdit(f"{what} cannot be {value!r:.40}: give a whole number from 1 up.")
