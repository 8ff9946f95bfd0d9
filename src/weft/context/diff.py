"""The difference between two requests: the first byte that changed, what changed it, and the text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import unified_diff

from weft.types.codec import Json
from weft.types.receipt import Receipt, ReceiptItem
from weft.types.sent import SentRequest
from weft.wire.items import kinds

_CAUSES = {
    "activity": "activity",
    "blocks": "block",
    "facts": "fact",
    "instructions": "instruction file",
    "memory_file": "memory file",
    "recall": "recall",
    "skills": "skill file",
    "standing": "standing instruction",
    "summaries": "summary",
    "tasks": "task",
    "tool_docs": "tool docs",
    "tool_rules": "tool rules",
    "tools": "tool set",
}
_ENDED = {
    "fold": "fold",
    "full": "fold",
    "unfold": "unfold",
    "stale": "old attachments",
    "model": "model",
    "tools": "tool set",
}
_TAKEN_OUT = {
    "delete": "of something that was remembered",
    "forget": "of something that was remembered",
    "permission": "that was narrowed",
    "purge": "of a text",
    "undo": "of a change to the memory",
}
"""What ends all epochs at once. It may have gone with an earlier message, so that no receipt names it."""
_SILENT = ("history", "message", "framing", "steps")
_MOST_LINES = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause(Json):
    """Something that is not as it was in the request before: its kind, such as `fact`, and its name."""

    kind: str
    name: str = ""

    @property
    def text(self) -> str:
        return f"{self.kind} {self.name}".strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestDiff(Json):
    """How a request differs from another.

    `shared_bytes` of its `bytes` are the same from the beginning, over tools, system and messages without
    cache marks, so the first changed byte has that number, counted from 0. It is in the item `item` of
    `part`. A request that `grew` begins with all of the other one. `causes` are in the order in which they
    stand in the request.
    """

    shared_bytes: int
    bytes: int
    bytes_before: int
    part: str = ""
    item: int = 0
    grew: bool = False
    causes: tuple[Cause, ...] = ()
    lines: tuple[str, ...] = ()

    @property
    def share(self) -> float:
        return self.shared_bytes / (self.bytes or 1)


def diff(
    before: SentRequest, after: SentRequest, *, receipts: tuple[Receipt | None, Receipt | None]
) -> RequestDiff:
    """Compare a request with an earlier one."""
    shared = _common(before.items, after.items)
    offset = sum(len(item.encode()) for item in after.items[:shared])
    grew = shared == len(before.items)
    if shared < min(len(before.items), len(after.items)):
        offset += _common(before.items[shared].encode(), after.items[shared].encode())
    parts = kinds(after)
    part = parts[shared] if shared < len(parts) else ""
    old, new = receipts
    return RequestDiff(
        shared_bytes=offset,
        bytes=after.size,
        bytes_before=before.size,
        part=part,
        item=shared - parts.index(part) if part else 0,
        grew=grew,
        causes=tuple(dict.fromkeys(causes(old, new))) if old and new else (),
        lines=tuple(_lines(before, after, shared)),
    )


def causes(before: Receipt, after: Receipt) -> Iterator[Cause]:
    """Yield what is new, changed or gone between two receipts, in the order of the request."""
    if (before.provider, before.model) != (after.provider, after.model):
        yield Cause(kind="model", name=after.model)
    if before.recipe != after.recipe:
        yield Cause(kind="recipe", name=after.recipe)
    ended, _, detail = after.epoch_why.partition(": ")
    if ended in _ENDED and ended not in ("model", "tools"):
        yield Cause(kind=_ENDED[ended])
    found = [*_lasting(before, after), *_new_with_message(before, after)]
    yield from found
    if not found and ended and ended not in (*_ENDED, "start", "files"):
        yield Cause(kind=ended, name=_TAKEN_OUT.get(ended, detail))


def _lasting(before: Receipt, after: Receipt) -> Iterator[Cause]:
    """Yield what is gone from the frozen part, and what is new or changed there."""
    old = {_key(item): item.hash for item in before.kept if _lasts(item)}
    new = {_key(item): item for item in after.kept if _lasts(item)}
    yield from (_cause(item) for item in before.kept if _lasts(item) and _key(item) not in new)
    yield from (_cause(item) for key, item in new.items() if old.get(key) != item.hash)


def _new_with_message(before: Receipt, after: Receipt) -> Iterator[Cause]:
    """Yield what went with the message and had not before.

    The first message of an epoch has everything with it, also what was seen before: only what changed counts.
    """
    known = {_key(item): item.hash for item in before.kept}
    for item in after.kept:
        if item.zone != "turn" or item.layer in _SILENT or not item.hash:
            continue
        is_new = _key(item) not in known
        if known.get(_key(item)) != item.hash and not (is_new and after.epoch_why):
            yield _cause(item)


def _lasts(item: ReceiptItem) -> bool:
    return item.zone != "turn" and item.layer not in _SILENT and bool(item.hash)


def _key(item: ReceiptItem) -> tuple[str, str]:
    return item.source, item.id or item.title


def _cause(item: ReceiptItem) -> Cause:
    if item.source == "bootstrap":
        return Cause(kind="clock" if item.id == "clock" else "situation")
    return Cause(kind=_CAUSES.get(item.source, item.source), name=item.title)


def _common(before: Sequence[object], after: Sequence[object]) -> int:
    count = 0
    for one, other in zip(before, after, strict=False):
        if one != other:
            break
        count += 1
    return count


def _lines(before: SentRequest, after: SentRequest, shared: int) -> Iterator[str]:
    """Yield the changed lines of two requests, behind the items that both begin with."""
    old = [line for item in before.items[shared:] for line in readable(item)]
    new = [line for item in after.items[shared:] for line in readable(item)]
    lines = unified_diff(old[:_MOST_LINES], new[:_MOST_LINES], "before", "after", n=2, lineterm="")
    yield from (line for at, line in enumerate(lines) if at > 1)


def readable(item: str) -> list[str]:
    """Return an item as lines for a person: who says it, then its text."""
    data = json.loads(item)
    if isinstance(data, str):
        return data.split("\n")
    if not isinstance(data, dict):
        return [item]
    role = str(data.get("role") or data.get("type") or data.get("name") or "")
    texts = _texts(data.get("content", data.get("parts", data)))
    return [f"[{role}]", *(line for text in texts for line in text.split("\n"))]


def _texts(content: object) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        for part in content:
            yield from _texts(part)
    elif isinstance(content, dict):
        if isinstance(content.get("text"), str):
            yield content["text"]
        else:
            yield json.dumps(content, ensure_ascii=False)
