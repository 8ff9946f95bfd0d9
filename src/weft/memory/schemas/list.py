"""Items in an order of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from weft.errors import InvalidEdit, LimitExceeded
from weft.memory.containers import Containers
from weft.memory.permission import Action
from weft.memory.schemas.base import Kind, check, check_list, kind_for, ordered_keys, scalar
from weft.memory.schemas.editor import Editor, Part, Section, exclusive
from weft.types.schema import ListSchema


class ListKind(Kind[ListSchema]):
    """A list. An item with a boolean `done` is a checkbox; others are numbered."""

    operations = "push_item, insert_item or delete_item"

    def content(self, schema: ListSchema, block: Containers, place: str) -> list[Any]:
        return block.items(f"{place}items")

    def render(self, schema: ListSchema, content: Any, *, bare: bool) -> str:
        item = schema.item_schema
        order = () if item is None else kind_for(item).keys(item)
        return "\n".join(_line(at, value, order) for at, value in enumerate(content, 1))

    def check(self, schema: ListSchema, value: Any, where: str) -> list[Any]:
        items = check_list(value, where)
        if schema.max_items is not None and len(items) > schema.max_items:
            raise LimitExceeded(label=where, limit=schema.max_items, needed=len(items), unit="items")
        return [check(schema.item_schema, item, where) for item in items]


class ListEditor(Editor):
    """The operations on items. An index is counted from 0."""

    @exclusive
    def push_item(self, item: Any, is_system: bool = False, *, section: Section | None = None) -> None:
        """Add an item to the end."""
        part = self._open(ListSchema, Action.APPEND, section, is_system)
        self._insert(part, self._block.length(f"{part.place}items"), item)

    @exclusive
    def insert_item(
        self, index: int, item: Any, is_system: bool = False, *, section: Section | None = None
    ) -> None:
        """Add an item before the one at this index."""
        part = self._open(ListSchema, Action.APPEND, section, is_system)
        _check_index(part, index, self._block.length(f"{part.place}items"))
        self._insert(part, index, item)

    @exclusive
    def delete_item(self, index: int, is_system: bool = False, *, section: Section | None = None) -> None:
        """Remove the item at this index."""
        part = self._open(ListSchema, Action.OVERWRITE, section, is_system)
        root = f"{part.place}items"
        _check_index(part, index, self._block.length(root) - 1)
        self._block.splice_items(root, index, 1, ())

    def _insert(self, part: Part[ListSchema], index: int, item: Any) -> None:
        schema, root = part.schema, f"{part.place}items"
        new = check(schema.item_schema, item, f"An item of {part.inline_name}")
        items = self._block.items(root)
        if schema.max_items is not None and len(items) >= schema.max_items:
            raise LimitExceeded(label=self.label, limit=schema.max_items, needed=len(items) + 1, unit="items")
        self._fit(part, [*items[:index], new, *items[index:]])
        self._block.splice_items(root, index, 0, [new])


def _check_index(part: Part[ListSchema], index: Any, last: int) -> None:
    if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index <= last:
        range_ = f"give one from 0 to {last}" if last >= 0 else "it is empty"
        raise InvalidEdit(f"{part.name} has no index {index!r}: {range_}.")


def _line(at: int, item: Any, order: Sequence[str]) -> str:
    if not isinstance(item, Mapping):
        return f"{at}. {scalar(item)}"
    done = item.get("done")
    if isinstance(done, bool):
        rest = _pairs({key: value for key, value in item.items() if key != "done"}, order)
        return f"[{'x' if done else ' '}] {rest}".rstrip()
    return f"{at}. {_pairs(item, order)}".rstrip()


def _pairs(item: Mapping[str, Any], order: Sequence[str]) -> str:
    """Write `key: value` pairs; a lone value needs no key."""
    keys = ordered_keys(item, order)
    if len(keys) == 1:
        return scalar(item[keys[0]])
    return ", ".join(f"{key}: {scalar(item[key])}" for key in keys)
