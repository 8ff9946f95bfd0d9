"""Frozen values to JSON and back, and TOML tables to values, by their type hints.

A field that still has its default is not written, and a missing field gets its default. Properties named in
a class's `DERIVED` are written for readers and ignored on load. The field that a class names as its `REST`
holds the keys that no other field has. Unknown keys are ignored in what programs
exchange (`unknown="ignore"`) and refused in what people write (`unknown="refuse"`, with a "did you mean").
"""

from __future__ import annotations

import dataclasses
import json
import re
import types
import typing
from base64 import b64encode
from collections.abc import Callable, Mapping
from datetime import datetime
from enum import Enum
from functools import cache
from typing import Any, ClassVar, Literal, Self, TypeVar, Union, get_args, get_origin

from weft.errors import ContextError, WeftError, did_you_mean

T = TypeVar("T")
Shape = tuple[tuple[str, str, Any, bool], ...]
MAX_NESTED = 16
_PLAIN = frozenset({str, int, float, bool, type(None)})
_ABSENT = object()
_SURROGATE = re.compile("[\ud800-\udfff]")
_write = json.JSONEncoder(ensure_ascii=False).encode  # `json.dumps` would make an encoder for each call


class Tagged:
    """A base whose subclasses are told apart by their `kind`, which is written first.

    A direct subclass is a family: it has an empty table `KINDS`, which its own subclasses fill.
    """

    __slots__ = ()
    KINDS: ClassVar[dict[str, Any]]
    kind: ClassVar[str]

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        if "kind" in vars(cls):
            cls.KINDS[cls.kind] = cls


class Json:
    """Gives a frozen dataclass `to_json` and `from_json`."""

    __slots__ = ()

    def to_json(self) -> str:
        return dump_json(to_dict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Load what `to_json` wrote; unknown keys are ignored.

        Raises:
            ContextError: the text is not JSON, or a field has the wrong type.
        """
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ContextError(f"This is not JSON: {error}.") from error
        return from_dict(cls, data, where=cls.__name__)


def dump_json(data: Any) -> str:
    """Write JSON that any UTF-8 file or terminal can hold: only lone surrogates are escaped."""
    text = _write(data)
    return _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def key(field: dataclasses.Field[Any]) -> str:
    """Return the name that a field has outside of Python."""
    return str(field.metadata.get("key", field.name))


def to_dict(value: Any) -> Any:
    """Return plain JSON data for a value; fields that hold their default are left out."""
    cls: Any = type(value)
    if cls in _PLAIN:
        return value
    if (shape := _shape(cls)) is not None:
        data = {
            name: to_dict(item)
            for attribute, name, default, always in shape
            if (item := getattr(value, attribute)) != default or always
        }
        if isinstance(value, Tagged):
            data = {"kind": cls.kind, **data}
        if rest := getattr(cls, "REST", ""):
            data |= to_dict(getattr(value, rest))
        return data | {name: to_dict(getattr(value, name)) for name in getattr(cls, "DERIVED", ())}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(name): to_dict(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_dict(item) for item in value]
    if isinstance(value, bytes):
        return b64encode(value).decode("ascii")
    return value


@cache
def _shape(cls: Any) -> Shape | None:
    """Return what is written of a dataclass: each attribute, its name, its default, and whether always."""
    if not hasattr(cls, "__dataclass_fields__"):
        return None
    return tuple(
        (field.name, name, _default(field), bool(field.metadata.get("always")))
        for name, field in _fields(cls).items()
    )


def from_dict(
    cls: type[T],
    data: Any,
    *,
    where: str,
    unknown: Literal["ignore", "refuse"] = "ignore",
    error: type[WeftError] = ContextError,
) -> T:
    """Build a dataclass from plain data, converting by type hint.

    Raises:
        WeftError: of the class `error`, naming the place, what is wrong there and what would be right.
    """
    loaded: T = _Loader(unknown, error).convert(cls, data, where)
    return loaded


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default


@cache
def _fields(cls: Any) -> dict[str, dataclasses.Field[Any]]:
    """Return the fields of a dataclass that have a JSON form, by their names in it."""
    rest = getattr(cls, "REST", "")
    public = [field for field in dataclasses.fields(cls) if not field.metadata.get("private")]
    return {key(field): field for field in public if field.name != rest}


@cache
def _loaded(cls: Any) -> tuple[tuple[str, str, Any, bool], ...]:
    """Return what is read of a dataclass: each name, its attribute and type, and whether it is required."""
    hints = typing.get_type_hints(cls)
    return tuple(
        (name, field.name, hints[field.name], _default(field) is dataclasses.MISSING)
        for name, field in _fields(cls).items()
    )


@dataclasses.dataclass(frozen=True, slots=True)
class _Loader:
    unknown: Literal["ignore", "refuse"]
    error: type[WeftError]
    depth: int = 0

    def value(self, cls: type[T], data: Any, where: str) -> T:
        if not isinstance(data, Mapping):
            raise self.error(f"{where} must be a table of named values, not {kind_name(data)}.")
        known: Any = cls
        fields, values = _fields(known), {}
        if rest := getattr(cls, "REST", ""):
            values[rest] = {name: item for name, item in data.items() if name not in fields}
        elif self.unknown == "refuse":
            for name in data:
                if name not in fields:
                    raise self.error(f"{where} has an unknown key {name!r}: {did_you_mean(name, fields)}")
        for name, attribute, hint, is_required in _loaded(known):
            item = data.get(name, _ABSENT)
            # A null of another program stands for a value that it does not have.
            if type(item) is hint:  # text, a number, true or false
                values[attribute] = item
            elif item is not _ABSENT and (item is not None or is_required or self.unknown == "refuse"):
                values[attribute] = self.convert(hint, item, f"{where}.{name}")
            elif is_required:
                raise self.error(f"{where} lacks the key {name!r}: add it.")
        return cls(**values)

    def convert(self, hint: Any, data: Any, where: str) -> Any:
        if hint is str and type(data) is str:
            return data
        method, argument = _conversion(hint)
        return method(self, argument, data, where)

    def member(self, enum: type[Enum], data: Any, where: str) -> Enum:
        return enum(self.choice([member.value for member in enum], data, where))

    def tagged(self, family: type[Tagged], data: Any, where: str) -> Any:
        if not isinstance(data, Mapping):
            raise self.error(f"{where} must be a table with the key 'kind', not {data!r:.40}.")
        if self.depth > MAX_NESTED:
            raise self.error(f"{where} is nested more than {MAX_NESTED} levels deep: make it flatter.")
        kind = data.get("kind")
        if kind not in list(family.KINDS):
            hint = did_you_mean(str(kind), family.KINDS)
            raise self.error(f"{where} cannot be of the kind {kind!r:.40}: {hint}")
        rest = {key: value for key, value in data.items() if key != "kind"}
        return dataclasses.replace(self, depth=self.depth + 1).value(family.KINDS[kind], rest, where)

    def union(self, options: tuple[Any, ...], data: Any, where: str) -> Any:
        """Convert to `X | None`, the only kind of union that values have."""
        if data is None:
            return None
        return self.convert(next(option for option in options if option is not type(None)), data, where)

    def items(self, hint: Any, data: Any, where: str) -> tuple[Any, ...]:
        if not isinstance(data, list | tuple):
            raise self.error(f"{where} must be a list, not {kind_name(data)}.")
        return tuple(self.convert(hint, item, f"{where}[{at}]") for at, item in enumerate(data))

    def mapping(self, hint: Any, data: Any, where: str) -> dict[str, Any]:
        if not isinstance(data, Mapping):
            raise self.error(f"{where} must be a table of named values, not {kind_name(data)}.")
        return {name: self.convert(hint, item, f"{where}.{name}") for name, item in data.items()}

    def choice(self, options: Any, data: Any, where: str) -> Any:
        if data not in options:
            raise self.error(f"{where} cannot be {data!r}: {did_you_mean(str(data), map(str, options))}")
        return data

    def plain(self, hint: Any, data: Any, where: str) -> Any:
        if hint in (Any, object):
            return data
        if hint is datetime:
            try:
                return data if isinstance(data, datetime) else datetime.fromisoformat(data)
            except (TypeError, ValueError):
                raise self.error(f"{where} must be a date and time such as 2026-11-15T20:30:00Z.") from None
        if hint is float and isinstance(data, int) and not isinstance(data, bool):
            return self.decimal(data, where)
        if not isinstance(data, hint) or (hint is int and isinstance(data, bool)):
            raise self.error(f"{where} must be {_NAMES.get(hint, hint.__name__)}, not {kind_name(data)}.")
        return data

    def decimal(self, data: int, where: str) -> float:
        try:
            return float(data)
        except OverflowError:
            raise self.error(f"{where} is too large a number.") from None


@cache
def _conversion(hint: Any) -> tuple[Callable[..., Any], Any]:
    """Return the method of a loader that converts to a type, and its argument."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _Loader.union, arguments
    if origin is tuple:
        return _Loader.items, arguments[0]
    if origin is Literal:
        return _Loader.choice, arguments
    if origin is not None and issubclass(origin, Mapping):
        return _Loader.mapping, arguments[1]
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _Loader.member, hint
    if isinstance(hint, type) and issubclass(hint, Tagged):
        return _Loader.tagged, hint
    return (_Loader.value if dataclasses.is_dataclass(hint) else _Loader.plain), hint


_NAMES = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}


def kind_name(data: Any) -> str:
    """Name the type of a value for a sentence: "a table", "text"."""
    if data is None:
        return "nothing"
    if isinstance(data, Mapping):
        return "a table"
    if isinstance(data, list | tuple):
        return "a list"
    return _NAMES.get(type(data), type(data).__name__)
