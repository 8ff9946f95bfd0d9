"""What a kind of memory block must be able to do, and the registry of kinds.

A kind is one file: a schema value (a `BlockSchema`), a `Kind` that reads, checks and renders content of that
schema, and an `Editor` with its operations. `register` makes it known.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Generic, TypeVar

from weft.errors import InvalidEdit
from weft.memory.containers import Containers
from weft.types.schema import BlockSchema, CompositeSection
from weft.types.value import plain

S = TypeVar("S", bound=BlockSchema)
_BREAK = re.compile(r"\r\n|\r|\n")


class Kind(ABC, Generic[S]):
    """The behaviour of one kind of block. It has no state: the schema and the content are arguments.

    `operations` names the methods that edit such a block, for a person who called another one.
    """

    operations: ClassVar[str]

    @abstractmethod
    def content(self, schema: S, block: Containers, place: str) -> Any:
        """Read the content as plain values, in the form that `render` takes. A new block has some too."""

    @abstractmethod
    def render(self, schema: S, content: Any, *, bare: bool) -> str:
        """Write the content as text; `bare` leaves out what Weft adds, such as the time of a log entry."""

    @abstractmethod
    def check(self, schema: S, value: Any, where: str) -> Any:
        """Return a value of this shape as JSON data, to be stored inside of an item.

        Raises:
            InvalidEdit: it has another shape, or it cannot be stored.
        """

    def keys(self, schema: S) -> tuple[str, ...]:
        """Return the order in which the named values of such an item are shown."""
        return ()

    def sections(self, schema: S) -> Sequence[CompositeSection] | None:
        """Return the sections, or None if this kind has none."""
        return None


_kinds: dict[type[BlockSchema], Kind[Any]] = {}


def register(schema: type[S], kind: Kind[S]) -> None:
    """Make a kind of blocks known, by the class of its schema."""
    _kinds[schema] = kind


def kind_for(schema: BlockSchema) -> Kind[Any]:
    """Return the behaviour of a schema.

    Raises:
        InvalidEdit: its kind was not registered.
    """
    if type(schema) not in _kinds:
        raise InvalidEdit(f"Blocks of the kind {schema.kind!r} have no behaviour: call `register` for it.")
    return _kinds[type(schema)]


def content_of(block: Containers, schema: BlockSchema | None = None, place: str = "") -> Any:
    """Read what a block, or a section of it, holds."""
    schema = block.schema if schema is None else schema
    return kind_for(schema).content(schema, block, place)


def render(schema: BlockSchema, content: Any, *, bare: bool = False) -> str:
    """Write content as the text that a model reads.

    No value can imitate the marks that Weft adds: the lines of a value are indented below its first, and a
    line like a section's header gains a backslash.
    """
    return kind_for(schema).render(schema, content, bare=bare)


def render_block(block: Containers) -> str:
    """Write all that a block holds as the text that a model reads."""
    return render(block.schema, content_of(block))


def measure(schema: BlockSchema, content: Any) -> int:
    """Count the characters of a block's limit that the content takes: its bare text."""
    return len(render(schema, content, bare=True))


def check(schema: BlockSchema | None, value: Any, where: str) -> Any:
    """Return a value as JSON data if it has the schema's shape; without a schema any JSON data will do."""
    return plain(value, where) if schema is None else kind_for(schema).check(schema, value, where)


def check_list(value: Any, where: str) -> Sequence[Any]:
    if not isinstance(value, list | tuple):
        raise InvalidEdit(f"{where} must be a list, not {value!r:.40}.")
    return value


def ordered_keys(values: Mapping[str, Any], order: Sequence[str]) -> list[str]:
    """Return the keys that have a value: as defined, then by name, because a stored table has no order."""
    known = [key for key in order if values.get(key) is not None]
    return known + sorted(key for key, value in values.items() if value is not None and key not in order)


def scalar(value: Any) -> str:
    """Write one value, on lines that cannot pass for lines of their own."""
    if isinstance(value, str):
        return _BREAK.sub(r"\g<0>  ", value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e16:
        return str(int(value))
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
