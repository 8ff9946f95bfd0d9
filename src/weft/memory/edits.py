"""Edits of blocks by the verbs of their schemas, as people, programs and models name them.

A text is appended to; a list is pushed to, inserted into and removed from; a map has fields to set, lists to
push to and counters to increment; a log gets entries. A section takes the verbs of its own schema.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from weft.errors import InvalidEdit, did_you_mean
from weft.memory.document import Document
from weft.memory.permission import Action
from weft.memory.schemas.base import kind_for
from weft.types.schema import BlockSchema, FieldDef, ListSchema, LogSchema, MapSchema, TextSchema

Verb = Literal["append", "push", "insert", "remove", "set", "increment", "log"]
VERBS: tuple[Verb, ...] = get_args(Verb)
_OVERWRITES = frozenset({"remove", "set", "increment"})
_TYPED_AS_WRITTEN = ("text", "timestamp")


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockEdit:
    """One edit of a block.

    `field` names a value of a map. `index` counts the items of a list from 1, as they are shown. `section` is
    the name of a composite's section; a section inside a section follows after a slash. A value that
    `is_typed` was written by a person as text: it is read as its place wants it.
    """

    verb: Verb
    value: Any = None
    field: str = ""
    index: int | None = None
    section: str = ""
    is_typed: bool = False

    @property
    def action(self) -> Action:
        """What the edit does to the block, in the words of permissions."""
        return Action.OVERWRITE if self.verb in _OVERWRITES else Action.APPEND

    @property
    def path(self) -> tuple[str, ...] | None:
        return tuple(self.section.split("/")) if self.section else None


def apply_edit(document: Document, edit: BlockEdit, *, is_system: bool = False) -> Any:
    """Make an edit.

    Raises:
        InvalidEdit: the block, or its section, has no such verb.
        InvalidEdit: it has no such field or item, or the value does not fit.
    """
    schema = schema_at(document.schema, edit.path or ())
    if edit.is_typed and isinstance(edit.value, str):
        edit = replace(edit, value=_read_typed(schema, edit), is_typed=False)
    kind = "list field" if isinstance(schema, MapSchema) and edit.verb in ("append", "push") else schema.kind
    apply = _APPLY.get((edit.verb, kind))
    if apply is None:
        verbs = sorted({verb for verb, known in _APPLY if known == schema.kind})
        where = (
            f"The section {edit.section!r} of {document.label!r}" if edit.section else f"{document.label!r}"
        )
        if kind_for(schema).sections(schema) is not None:
            names = ", ".join(section.name for section in kind_for(schema).sections(schema) or ())
            raise InvalidEdit(f"{where} has sections: name one of them ({names}).", kind=schema.kind)
        sentence = f"{where} is a {schema.kind} and cannot {edit.verb}: it can {', '.join(verbs)}."
        raise InvalidEdit(sentence, kind=schema.kind)
    return apply(document, edit, is_system)


def schema_at(schema: BlockSchema, path: Sequence[str]) -> BlockSchema:
    """Return the schema of a section.

    Raises:
        InvalidEdit: there is no such section.
    """
    for name in path:
        sections = {section.name: section.schema for section in kind_for(schema).sections(schema) or ()}
        if name not in sections:
            raise InvalidEdit(f"There is no section {name!r}: {did_you_mean(name, sections)}")
        schema = sections[name]
    return schema


def _append_text(document: Document, edit: BlockEdit, is_system: bool) -> None:
    before = document.text(section=edit.path)
    text = str(edit.value)
    document.append_text(f"\n{text}" if before else text, is_system, section=edit.path)


def _set_text(document: Document, edit: BlockEdit, is_system: bool) -> None:
    document.set_text(str(edit.value), is_system, section=edit.path)


def _push(document: Document, edit: BlockEdit, is_system: bool) -> None:
    document.push_item(edit.value, is_system, section=edit.path)


def _insert(document: Document, edit: BlockEdit, is_system: bool) -> None:
    document.insert_item(_position(edit), edit.value, is_system, section=edit.path)


def _remove(document: Document, edit: BlockEdit, is_system: bool) -> None:
    document.delete_item(_position(edit), is_system, section=edit.path)


def _set_item(document: Document, edit: BlockEdit, is_system: bool) -> None:
    at = _position(edit)
    document.insert_item(at, edit.value, is_system, section=edit.path)
    document.delete_item(at + 1, is_system, section=edit.path)


def _set_field(document: Document, edit: BlockEdit, is_system: bool) -> None:
    document.set_field(_named(edit), edit.value, is_system, section=edit.path)


def _push_to_field(document: Document, edit: BlockEdit, is_system: bool) -> None:
    document.append_to_list_field(_named(edit), edit.value, is_system, section=edit.path)


def _increment(document: Document, edit: BlockEdit, is_system: bool) -> int | float:
    by = 1 if edit.value is None else edit.value
    return document.increment_counter(_named(edit), by, is_system, section=edit.path)


def _log(document: Document, edit: BlockEdit, is_system: bool) -> None:
    document.append_log_entry(edit.value, is_system, section=edit.path)


_APPLY: dict[tuple[str, str], Callable[[Document, BlockEdit, bool], Any]] = {
    ("append", "text"): _append_text,
    ("set", "text"): _set_text,
    ("append", "list"): _push,
    ("push", "list"): _push,
    ("insert", "list"): _insert,
    ("remove", "list"): _remove,
    ("set", "list"): _set_item,
    ("set", "map"): _set_field,
    ("increment", "map"): _increment,
    ("append", "list field"): _push_to_field,
    ("push", "list field"): _push_to_field,
    ("append", "log"): _log,
    ("log", "log"): _log,
}


def _position(edit: BlockEdit) -> int:
    """Return the index of an item, from 0."""
    if edit.index is None or edit.index < 1:
        raise InvalidEdit(f"To {edit.verb} an item, give its number as it is shown, from 1 up.")
    return edit.index - 1


def _named(edit: BlockEdit) -> str:
    if not edit.field:
        raise InvalidEdit(f"To {edit.verb} a value of a map, name its field.", kind="map")
    return edit.field


def _read_typed(schema: BlockSchema, edit: BlockEdit) -> Any:
    """Read a value that a person typed, as its place wants it."""
    text = str(edit.value)
    if isinstance(schema, TextSchema):
        return text
    if isinstance(schema, MapSchema):
        field = next((field for field in schema.fields if field.name == edit.field), None)
        if field is None or field.type in _TYPED_AS_WRITTEN:
            return text
        return text if edit.verb in ("append", "push") and not _looks_like_json(text) else _json(text)
    if _looks_like_json(text):
        return _json(text)
    return _as_record(_item_fields(schema), text)


def _item_fields(schema: BlockSchema) -> Sequence[FieldDef]:
    """Return the fields that an item of a list, or an entry of a log, has."""
    if isinstance(schema, LogSchema):
        return schema.entry_schema.fields
    item = schema.item_schema if isinstance(schema, ListSchema) else None
    return item.fields if isinstance(item, MapSchema) else ()


def _as_record(fields: Sequence[FieldDef], text: str) -> str | Mapping[str, Any]:
    """Return words as an item: as its first text field, and not yet done; without fields, as they are."""
    first = next((field.name for field in fields if field.type == "text"), None)
    if first is None:
        return text
    undone = {field.name: False for field in fields if field.name == "done" and field.type == "boolean"}
    return {first: text, **undone}


def _looks_like_json(text: str) -> bool:
    return text.lstrip().startswith(("{", "["))


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text  # the schema says what is wrong with it
