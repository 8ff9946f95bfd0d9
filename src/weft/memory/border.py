"""Where Weft meets Loro: its errors, its versions and its diffs in a form that can be relied on."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from struct import Struct
from typing import Any

from loro import ID, ContainerID, Diff, DiffBatch, LoroDoc, TextDelta, ValueOrContainer, VersionVector

from weft.errors import StoreError
from weft.memory.carry import Step

_PEER = Struct(">QI")
_COVER = "█"


@contextmanager
def guarded(failed: str) -> Iterator[None]:
    """Turn whatever Loro raises, which is a bare BaseException or a panic, into a StoreError.

    The same for subscribers: one that raised inside Loro would make it panic, so they are called from here.
    """
    try:
        yield
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:
        raise StoreError(f"{failed}: {error}.") from error


def value_of(found: ValueOrContainer | None) -> Any:
    return found.value if isinstance(found, ValueOrContainer.Value) else None


def pack(vector: VersionVector) -> bytes:
    """The edits of each process by its number, in order. Loro's own encoding of equal versions differs."""
    ends = sorted((span.peer, span.counter.end) for span in vector.sub_iter(VersionVector()))
    return b"".join(_PEER.pack(peer, end) for peer, end in ends)


def unpack(version: bytes) -> VersionVector:
    vector = VersionVector()
    for peer, end in _PEER.iter_unpack(version):
        vector.set_end(ID(peer, end))
    return vector


def split(wanted: DiffBatch, later: DiffBatch) -> tuple[list[tuple[str, str, Any]], DiffBatch]:
    """A diff in two: the values of maps, but for those that a later diff changed too; and all else."""
    fields, rest = list[tuple[str, str, Any]](), DiffBatch()
    changed = {(str(root), key) for root, diff in later.get_diff() for key in _keys(diff)}
    for root, diff in wanted.get_diff():
        if not isinstance(diff, Diff.Map) or not isinstance(root, ContainerID.Root):
            rest.push(root, diff)
            continue
        fields += [
            (root.name, key, None if found is None else value_of(found))
            for key, found in diff.diff.updated.items()
            if (str(root), key) not in changed
        ]
    return fields, rest


def set_fields(doc: LoroDoc, fields: Sequence[tuple[str, str, Any]]) -> None:
    """Give maps these values; None takes one away."""
    for name, key, value in fields:
        held = doc.get_map(name)
        if value is not None:
            held.insert(key, value)
        elif key in held:
            held.delete(key)
    doc.commit()


def _keys(diff: Diff) -> Sequence[str]:
    return tuple(diff.diff.updated) if isinstance(diff, Diff.Map) else ()


def text_steps(batch: DiffBatch) -> list[Step]:
    """How the text of a text block changed."""
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


def masked_json(changes: str, text: str) -> tuple[str, int]:
    """Changes as JSON with a text in what was written covered, character by character; how often it was."""
    count = 0

    def masked(value: Any) -> Any:
        nonlocal count
        if isinstance(value, str):
            count += value.count(text)
            return value.replace(text, _COVER * len(text))
        if isinstance(value, list):
            return [masked(item) for item in value]
        if isinstance(value, dict):
            return {masked(key): masked(item) for key, item in value.items()}
        return value

    data = json.loads(changes)
    for change in data["changes"]:
        for operation in change["ops"]:
            content = operation["content"]
            content.update({key: masked(content[key]) for key in ("text", "value") if key in content})
    return json.dumps(data, ensure_ascii=False), count


def mentions(value: Any, text: str) -> bool:
    """Whether a text is anywhere in a value."""
    if isinstance(value, str):
        return text in value
    if isinstance(value, dict):
        return any(mentions(part, text) for pair in value.items() for part in pair)
    return isinstance(value, list) and any(mentions(item, text) for item in value)
