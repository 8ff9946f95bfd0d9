"""A memory block as one agent holds it: the operations of its schema, within its permission and its limits.

Every operation checks everything before it writes anything, because the document below has no rollback: the
permission, the read-only marks, the shape, the value, and how large the block would become.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from weft.errors import LimitExceeded, PermissionDenied, StoreError, did_you_mean
from weft.memory.blockdoc import BlockDoc
from weft.memory.events import BlockChanged, Subscription
from weft.memory.items import entry as log_entry
from weft.memory.items import shaped, splice, stamped
from weft.memory.permission import Action, check
from weft.memory.render import measure, render
from weft.types.memory import Permission
from weft.types.schema import (
    BlockSchema,
    CompositeSchema,
    FieldDef,
    ListSchema,
    LogSchema,
    MapSchema,
    TextSchema,
    kind_of,
)
from weft.types.value import as_count, as_text, plain, typed

__all__ = ["BlockChanged", "BlockDoc", "Document", "Section", "Subscription"]

P = ParamSpec("P")
T = TypeVar("T")

Section = str | tuple[str, ...]
"""A section of a composite by its name; of a composite inside a composite by its path."""

_OPERATIONS = {
    "text": "set_text, append_text or replace_text",
    "map": "set_field, set_text_field, append_to_list_field or increment_counter",
    "list": "push_item, insert_item or delete_item",
    "log": "append_log_entry",
    "composite": "set_text_in_section or set_field_in_section",
}
_FIELD_OPERATIONS = {"list": "append_to_list_field or set_field", "counter": "increment_counter or set_field"}


@dataclass(frozen=True, slots=True)
class _Target:
    """A part of the block that an operation works on: all of it, or a section."""

    schema: Any
    place: str
    path: tuple[str, ...]
    name: str


def _whole(operation: Callable[Concatenate[Document, P], T]) -> Callable[Concatenate[Document, P], T]:
    """Nobody else touches the block between an operation's checks and its write."""

    @wraps(operation)
    def run(self: Document, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with self._block.lock:
            return operation(self, *args, **kwargs)

    return run


class Versioned(Protocol):
    """Something that has a version, which changes when it changes."""

    @property
    def version(self) -> str: ...


class Document:
    """A handle on the one document of a block in this process: who holds it, and what they may do.

    Edits can be read at once, and by every handle of the block. Subscribers hear of them on `commit`, others
    once the store has persisted them. `is_system` passes over the permission and the read-only marks, never
    over limits and types; `loaded` is what must live as long as the handle. Operations of a section's own
    schema take `section=`.

    `version` is what was read: the state of the block when the handle was made or last read. A whole
    text that is written with it as `base` counts as a change of that state.
    """

    def __init__(
        self,
        block: BlockDoc,
        *,
        accessor: str | None = None,
        permission: Permission = Permission.READ_WRITE,
        consented: bool = False,
        append_only: bool = False,
        loaded: Versioned | None = None,
    ) -> None:
        self._block, self._loaded = block, loaded
        self.accessor, self.permission, self.consented = accessor, permission, consented
        self.append_only = append_only
        self.version = "" if loaded is None else loaded.version

    @property
    def label(self) -> str:
        return self._block.label

    @property
    def schema(self) -> BlockSchema:
        return self._block.schema

    # --- text

    @_whole
    def set_text(self, text: str, is_system: bool = False, *, section: Section | None = None) -> None:
        """Make this the whole text. Only what differs is written, so that edits made meanwhile survive."""
        target = self._open(TextSchema, Action.OVERWRITE, section, is_system)
        new, old = as_text(text, target.name), self._block.text(target.place)
        self._fit_text(target, len(old), new)
        self._write_text(target, old, new)

    @_whole
    def append_text(self, text: str, is_system: bool = False, *, section: Section | None = None) -> None:
        """Add to the end, with nothing in between."""
        target = self._open(TextSchema, Action.APPEND, section, is_system)
        added, length = as_text(text, target.name), self._block.text_length(target.place)
        if target.path:
            self._fit(target, self._block.text(target.place) + added)
        else:
            self._fit_size(length, length + len(added))
        if added:
            self._block.splice_text(length, 0, added, target.place)

    @_whole
    def replace_text(
        self, old: str, new: str, is_system: bool = False, *, section: Section | None = None
    ) -> bool:
        """Replace the first occurrence; false if there is none."""
        target = self._open(TextSchema, Action.OVERWRITE, section, is_system)
        if not as_text(old, target.name):
            raise StoreError(f"{target.name} has no empty text to replace: give the words to look for.")
        added, held = as_text(new, target.name), self._block.text(target.place)
        at = held.find(old)
        if at < 0:
            return False
        changed = f"{held[:at]}{added}{held[at + len(old) :]}"
        self._fit_text(target, len(held), changed)
        self._write_text(target, held, changed)
        return True

    @_whole
    def text(self, *, section: Section | None = None) -> str:
        """Read the whole text, whatever part of it a viewport shows."""
        target = self._open(TextSchema, Action.READ, section, True)
        self._note_version()
        return self._block.text(target.place)

    def set_text_in_section(self, text: str, section: Section, is_system: bool = False) -> None:
        """Make this the whole text of a section."""
        self.set_text(text, is_system, section=section)

    # --- map

    @_whole
    def set_field(
        self, name: str, value: Any, is_system: bool = False, *, section: Section | None = None
    ) -> None:
        """Set a field to a value of its type. None takes the value away, unless the field is required."""
        target, field = self._field(name, Action.OVERWRITE, section, is_system)
        if value is None:
            self._check_clearable(target, field)
        new: Any = None if value is None else typed(field.type, value, _where(target, field))
        content = self._block.content(target.schema, target.place)
        self._fit(target, {**content, name: field.default if new is None else new})
        if field.type == "counter":
            self._block.add_to_counter(field, new - (content.get(name) or 0), target.place)
        elif field.type == "list":
            old = self._block.list_field(field, target.place)
            self._block.splice_list_field(field, *splice(old, new), target.place)
        else:
            self._block.put_field(name, new, target.place)

    @_whole
    def set_text_field(
        self, name: str, text: str, is_system: bool = False, *, section: Section | None = None
    ) -> None:
        """Set a field of the type text."""
        target, field = self._field(name, Action.OVERWRITE, section, is_system, "text")
        self.set_field(name, as_text(text, _where(target, field)), is_system, section=section)

    @_whole
    def append_to_list_field(
        self, name: str, item: Any, is_system: bool = False, *, section: Section | None = None
    ) -> None:
        """Add an item to the end of a list field."""
        target, field = self._field(name, Action.APPEND, section, is_system, "list")
        new = plain(item, _where(target, field))
        content = self._block.content(target.schema, target.place)
        shown, held = content.get(name, []), self._block.list_field(field, target.place)
        self._fit(target, {**content, name: [*shown, new]})
        added = [new] if held else [*shown, new]  # the first item takes the default along
        self._block.splice_list_field(field, len(held), 0, added, target.place)

    @_whole
    def increment_counter(
        self, name: str, by: int | float = 1, is_system: bool = False, *, section: Section | None = None
    ) -> int | float:
        """Add to a counter, or take from it, and return what it then says here."""
        target, field = self._field(name, Action.OVERWRITE, section, is_system, "counter")
        content = self._block.content(target.schema, target.place)
        step = as_count(by, _where(target, field))
        new = as_count((content.get(name) or 0) + step, _where(target, field))
        self._fit(target, {**content, name: new})
        self._block.add_to_counter(field, step, target.place)
        return new

    def set_field_in_section(self, field: str, value: Any, section: Section, is_system: bool = False) -> None:
        """Set a field of a section that is a map."""
        self.set_field(field, value, is_system, section=section)

    # --- list

    @_whole
    def push_item(self, item: Any, is_system: bool = False, *, section: Section | None = None) -> None:
        """Add an item to the end."""
        target = self._open(ListSchema, Action.APPEND, section, is_system)
        self._insert(target, self._block.length(f"{target.place}items"), item)

    @_whole
    def insert_item(
        self, index: int, item: Any, is_system: bool = False, *, section: Section | None = None
    ) -> None:
        """Add an item before the one at this index, counted from 0."""
        target = self._open(ListSchema, Action.APPEND, section, is_system)
        self._check_index(target, index, self._block.length(f"{target.place}items"))
        self._insert(target, index, item)

    @_whole
    def delete_item(self, index: int, is_system: bool = False, *, section: Section | None = None) -> None:
        """Remove the item at this index, counted from 0."""
        target = self._open(ListSchema, Action.OVERWRITE, section, is_system)
        root = f"{target.place}items"
        self._check_index(target, index, self._block.length(root) - 1)
        self._block.splice_items(root, index, 1, ())

    # --- log

    @_whole
    def append_log_entry(
        self, entry: Any, is_system: bool = False, *, section: Section | None = None
    ) -> None:
        """Add an entry: named values, or words. It shows its `timestamp`, else when it was written."""
        target = self._open(LogSchema, Action.APPEND, section, is_system)
        new = log_entry(target.schema.entry_schema, entry, f"The entry for {_lower(target.name)}")
        kept = stamped(new, now())
        shown = self._block.content(target.schema, target.place)
        self._fit(target, [kept, *shown][: target.schema.display_limit])
        root = f"{target.place}entries"
        self._block.splice_items(root, self._block.length(root), 0, [kept])

    @_whole
    def log_entries(self, limit: int | None = None, *, section: Section | None = None) -> list[Any]:
        """The newest entries as they were given, newest first: as many as are shown, or are asked for."""
        target = self._open(LogSchema, Action.READ, section, True)
        limit = target.schema.display_limit if limit is None else limit
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 0:
            raise StoreError(
                f"{target.name} cannot give {limit!r} entries: ask for a whole number from 0 up."
            )
        return [kept["entry"] for kept in self._block.newest(f"{target.place}entries", limit)]

    # --- the whole

    @_whole
    def render(self) -> str:
        """Render the block as a model reads it."""
        self._note_version()
        return render(self.schema, self._block.content())

    def _note_version(self) -> None:
        if self._loaded is not None:
            self.version = self._loaded.version

    def commit(self) -> None:
        """End the current edit and tell the subscribers."""
        self._block.commit()

    def subscribe_root(self, callback: Callable[[BlockChanged], object]) -> Subscription:
        """Be told of every change to the block: local edits on commit, those of others as they come in."""
        return self._block.subscribe_root(callback)

    # --- checks

    def _open(
        self, cls: type[BlockSchema], action: Action, section: Section | None, is_system: bool
    ) -> _Target:
        """The part to work on, if the holder may do this to it and it has the right schema."""
        check(
            action,
            permission=self.permission,
            label=self.label,
            consented=self.consented,
            append_only=self.append_only,
            is_system=is_system,
        )
        target = _Target(self.schema, "", (), f"The block {self.label!r}")
        path = () if section is None else (section,) if isinstance(section, str) else tuple(section)
        for name in path:
            target = self._enter(target, name, is_system)
        if not isinstance(target.schema, cls):
            kind = kind_of(target.schema)
            how = f" with section={section!r}" if path and kind != "composite" else ""
            raise StoreError(f"{target.name} is a {kind}: use {_OPERATIONS[kind]}{how}.")
        return target

    def _enter(self, target: _Target, name: str, is_system: bool) -> _Target:
        if not isinstance(target.schema, CompositeSchema):
            kind = kind_of(target.schema)
            raise StoreError(f"{target.name} is a {kind} without sections: use {_OPERATIONS[kind]}.")
        sections = {section.name: section for section in target.schema.sections}
        if name not in sections:
            raise StoreError(f"{target.name} has no section {name!r}: {did_you_mean(str(name), sections)}")
        inside = f"The section {name!r} of the block {self.label!r}"
        if sections[name].read_only and not is_system:
            raise PermissionDenied(f"{inside} is read-only: only the system may write it.")
        place = self._block.section(name, target.place)
        return _Target(sections[name].schema, place, (*target.path, name), inside)

    def _field(
        self, name: str, action: Action, section: Section | None, is_system: bool, kind: str | None = None
    ) -> tuple[_Target, FieldDef]:
        target = self._open(MapSchema, action, section, is_system)
        fields = {field.name: field for field in target.schema.fields}
        if name not in fields:
            raise StoreError(f"{target.name} has no field {name!r}: {did_you_mean(str(name), fields)}")
        field = fields[name]
        if field.read_only and not is_system:
            raise PermissionDenied(f"{_where(target, field)} is read-only: only the system may write it.")
        if kind is not None and field.type != kind:
            right = _FIELD_OPERATIONS.get(field.type, "set_field")
            raise StoreError(f"{_where(target, field)} is of the type {field.type}: use {right}.")
        return target, field

    def _check_clearable(self, target: _Target, field: FieldDef) -> None:
        if field.required:
            raise StoreError(f"{_where(target, field)} is required: give it another value instead.")
        if field.type in ("list", "counter"):
            empty = "[]" if field.type == "list" else "0"
            raise StoreError(f"{_where(target, field)} cannot be taken away: set it to {empty}.")

    def _check_index(self, target: _Target, index: Any, last: int) -> None:
        if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index <= last:
            range_ = f"give one from 0 to {last}" if last >= 0 else "it is empty"
            raise StoreError(f"{target.name} has no index {index!r}: {range_}.")

    # --- limits and writing

    def _fit(self, target: _Target, new: Any) -> None:
        """Refuse content that would make the block larger than its limit. Shrinking is always allowed."""
        if self._block.char_limit is None:
            return
        content = self._block.content()
        changed = _put(content, target.path, new)
        self._fit_size(measure(self.schema, content), measure(self.schema, changed))

    def _fit_text(self, target: _Target, length: int, new: str) -> None:
        if target.path:
            self._fit(target, new)
        else:
            self._fit_size(length, len(new))

    def _fit_size(self, before: int, after: int) -> None:
        limit = self._block.char_limit
        if limit is not None and after > limit and after > before:
            raise LimitExceeded(label=self.label, limit=limit, needed=after)

    def _write_text(self, target: _Target, old: str, new: str) -> None:
        start, removed, added = splice(old, new)
        if removed or added:
            self._block.splice_text(start, removed, str(added), target.place)

    def _insert(self, target: _Target, index: int, item: Any) -> None:
        schema, root = target.schema, f"{target.place}items"
        new = shaped(schema.item_schema, item, f"An item of {_lower(target.name)}")
        items = self._block.items(root)
        if schema.max_items is not None and len(items) >= schema.max_items:
            raise LimitExceeded(label=self.label, limit=schema.max_items, needed=len(items) + 1, unit="items")
        self._fit(target, [*items[:index], new, *items[index:]])
        self._block.splice_items(root, index, 0, [new])


def now() -> datetime:
    """The time a log entry is given."""
    return datetime.now(UTC)


def _where(target: _Target, field: FieldDef) -> str:
    return f"The field {field.name!r} of {_lower(target.name)}"


def _lower(name: str) -> str:
    return f"{name[0].lower()}{name[1:]}"


def _put(content: Any, path: tuple[str, ...], new: Any) -> Any:
    """The content with one part replaced."""
    if not path:
        return new
    return {**content, path[0]: _put(content[path[0]], path[1:], new)}
