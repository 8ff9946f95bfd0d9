"""Loro's errors, versions and diffs in the form in which the rest of the memory uses them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from struct import Struct
from typing import Any, Literal
from urllib.parse import quote, unquote

from loro import (
    ID,
    ContainerID,
    Diff,
    DiffBatch,
    DiffEvent,
    EventTriggerKind,
    Frontiers,
    LoroDoc,
    TextDelta,
    ValueOrContainer,
    VersionVector,
)

from weft.errors import StoreError
from weft.memory.rebase import Step
from weft.types.redaction import Redaction

_PEER = Struct(">QI")
_OWN_PARTS = frozenset(
    {"cid", "root-text", "root-fields", "root-items", "root-entries", "root-list", "root-counter"}
    | {"root-section", "section", "text", "fields", "items", "entries", "list", "counter"}
    | {"Text", "Map", "List", "MovableList", "Counter", "Tree"}
)
"""Parts of a container's name that are ours; the others are names of fields and sections."""


@contextmanager
def guarded(failed: str) -> Iterator[None]:
    """Turn whatever Loro raises, a bare BaseException or a panic, into a StoreError.

    Subscribers are called inside of this too: one that raised inside of Loro would make it panic.
    """
    try:
        yield
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:
        raise StoreError(f"{failed}: {error}.") from error


def covers(version: bytes, other: bytes) -> bool:
    """Check whether a version has every edit that another one has."""
    ends = dict(_PEER.iter_unpack(version))
    return all(ends.get(peer, 0) >= end for peer, end in _PEER.iter_unpack(other))


def trigger(event: DiffEvent) -> Literal["local", "import", "checkout"]:
    """Return the cause of a document's change."""
    if event.triggered_by == EventTriggerKind.Local:
        return "local"
    return "import" if event.triggered_by == EventTriggerKind.Import else "checkout"


def value_of(item: ValueOrContainer | None) -> Any:
    return item.value if isinstance(item, ValueOrContainer.Value) else None


def pack(vector: VersionVector) -> bytes:
    """Encode the number of edits of each process, in order. Loro's own encoding of equal versions differs."""
    return b"".join(_PEER.pack(peer, end) for peer, end in sorted(_ends(vector).items()))


def _ends(vector: VersionVector) -> dict[int, int]:
    return {span.peer: span.counter.end for span in vector.sub_iter(VersionVector())}


def unpack(version: bytes) -> VersionVector:
    return _vector_of(dict(_PEER.iter_unpack(version)))


def _vector_of(ends: Mapping[int, int]) -> VersionVector:
    vector = VersionVector()
    for peer, end in ends.items():
        if end:
            vector.set_end(ID(peer, end))
    return vector


def point_without(doc: LoroDoc, changes: Iterable[tuple[bytes, bytes]]) -> Frontiers:
    """Return the point in the history that has all edits but those of some changes.

    Each change is given by the points before and after it. No edit that is left out may be one that a
    remaining edit builds on.
    """
    ends = _ends(doc.oplog_vv)
    for before, after in changes:
        starts = _ends(_vector(doc, before))
        for peer, end in _ends(_vector(doc, after)).items():
            if starts.get(peer, 0) < end:
                ends[peer] = min(ends[peer], starts.get(peer, 0))
    return doc.vv_to_frontiers(_vector_of(ends))


def _vector(doc: LoroDoc, point: bytes) -> VersionVector:
    vector = doc.frontiers_to_vv(Frontiers.decode(point))
    if vector is None:
        raise StoreError("it does not have all of its history")
    return vector


def split(wanted: DiffBatch, later: DiffBatch) -> tuple[list[tuple[str, str, Any]], DiffBatch]:
    """Split a diff: the values of maps, except those that a later diff changed too; and all else."""
    fields, rest = list[tuple[str, str, Any]](), DiffBatch()
    changed = {(str(root), key) for root, diff in later.get_diff() for key in _keys(diff)}
    for root, diff in wanted.get_diff():
        if not isinstance(diff, Diff.Map) or not isinstance(root, ContainerID.Root):
            rest.push(root, diff)
            continue
        fields += [
            (root.name, key, None if item is None else value_of(item))
            for key, item in diff.diff.updated.items()
            if (str(root), key) not in changed
        ]
    return fields, rest


def set_fields(doc: LoroDoc, fields: Sequence[tuple[str, str, Any]]) -> None:
    """Set these values of maps; None removes one."""
    for name, key, value in fields:
        values = doc.get_map(name)
        if value is not None:
            values.insert(key, value)
        elif key in values:
            values.delete(key)
    doc.commit()


def _keys(diff: Diff) -> Sequence[str]:
    return tuple(diff.diff.updated) if isinstance(diff, Diff.Map) else ()


def text_steps(batch: DiffBatch) -> list[Step]:
    """Return the steps in which the text of a text block changed."""
    return [
        _step(delta)
        for root, diff in batch.get_diff()
        if isinstance(diff, Diff.Text) and isinstance(root, ContainerID.Root) and root.name == "text"
        for delta in diff.diff
    ]


def _step(delta: TextDelta) -> Step:
    if isinstance(delta, TextDelta.Insert):
        return delta.insert
    if isinstance(delta, TextDelta.Retain):
        return delta.retain
    return -delta.delete if isinstance(delta, TextDelta.Delete) else 0


def masked(doc: LoroDoc, redaction: Redaction) -> LoroDoc | None:
    """Redact a text in every change of a document. Returns None if no change has it.

    The number of characters stays the same, so that the offsets of later changes still fit. The names of
    fields and sections get the mark, as they do in the schema.
    """
    data = json.loads(doc.export_json_updates(VersionVector(), doc.oplog_vv))
    is_there = False
    for change in data["changes"]:
        for operation in change["ops"]:
            before = json.dumps(operation)
            _cover(operation, redaction)
            is_there = is_there or json.dumps(operation) != before
    if not is_there:
        return None
    rewritten = LoroDoc()
    rewritten.import_json_updates(json.dumps(data, ensure_ascii=False))
    return rewritten


def _cover(operation: dict[str, Any], redaction: Redaction) -> None:
    content = operation["content"]
    if "key" in content:
        content["key"] = redaction.in_text(content["key"])
    if content["type"] != "counter":
        content.update({key: redaction.covered(content[key]) for key in ("text", "value") if key in content})
    operation["container"] = ":".join(
        part if part in _OWN_PARTS else quote(redaction.in_text(unquote(part)), safe="")
        for part in operation["container"].split(":")
    )


def holds(doc: LoroDoc, redaction: Redaction) -> bool:
    """Check whether a text is in a document's content, or in the name of a field or a section."""
    content: Any = doc.get_deep_value()
    names = (part for name in content for part in name.split(":") if part not in _OWN_PARTS)
    return redaction.is_in(list(content.values())) or any(redaction.is_in(unquote(name)) for name in names)


def rebuilt(doc: LoroDoc, redaction: Redaction) -> LoroDoc:
    """Return a document with the same content, a text covered in it, and no history.

    Loro stores a long text in pieces, and the text may be in two of them.
    """
    plain = _without_history(doc)
    content: Any = plain.get_deep_value()
    for name, value in content.items():
        if isinstance(value, str) and redaction.is_in(value):
            text = plain.get_text(name)
            text.delete(0, text.len_unicode)
            text.insert(0, redaction.covered(value))
    plain.commit()
    return _without_history(plain)


def _without_history(doc: LoroDoc) -> LoroDoc:
    fresh = LoroDoc()
    fresh.apply_diff(doc.diff(fresh.oplog_frontiers, doc.oplog_frontiers))
    fresh.commit()
    return fresh
