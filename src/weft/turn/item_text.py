"""The exact text behind an item of a receipt, as the stored request or the log has it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b

from weft.context.diff import readable
from weft.memory.base import Store
from weft.offload import offloaded
from weft.turn.inspect import TurnView
from weft.types.message import Message
from weft.types.receipt import ReceiptItem
from weft.wire.items import kinds

_MOST_LINES = 400
"""The lines of the longest piece that is looked for in a request."""
_MOST_STEPS = 2_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemText:
    """A text that stood in a request, or stands in the log: what it is, who wrote it, and the text."""

    heading: str = ""
    origin: str = ""
    text: str


async def item_texts(store: Store, turn: TurnView, item: ReceiptItem, *, limit: int = 50) -> list[ItemText]:
    """Return the texts of an item: of a stretch of history its newest `limit` messages, else one text.

    A piece that was not sent has none, unless it is a part of the log.
    """
    if item.span:
        first, last = item.span[0], item.span[-1]
        start = max(first, last - limit + 1)
        messages = await store.messages.between(turn.info.session_id, start, last)
        return [_of_message(number, message) for number, message in enumerate(messages, start)]
    if not item.hash or not turn.requests or not item.kept:
        return []
    if item.layer == "tools":
        text = _tool(turn, item.title)
    else:
        size = turn.first.request.size
        text = await offloaded(size, _find, turn, item.hash)
    return [ItemText(text=text, origin=item.origin)] if text else []


def _of_message(number: int, message: Message) -> ItemText:
    calls = "".join(
        f"\n→ {call.name} {json.dumps(dict(call.arguments), ensure_ascii=False)}"
        for call in message.tool_calls
    )
    heading = f"message {number}: {message.tool_name or message.name or message.role}"
    return ItemText(heading=heading, origin=message.origin, text=f"{message.content}{calls}")


def _tool(turn: TurnView, name: str) -> str:
    """Return the JSON in which a tool was offered."""
    request = turn.first.request
    for part, item in zip(kinds(request), request.items, strict=True):
        if part == "tools" and f'"{name}"' in item:
            for tool in _tools(json.loads(item)):
                if tool.get("name", tool.get("function", {}).get("name")) == name:
                    return json.dumps(tool, ensure_ascii=False, indent=2)
    return ""


def _tools(item: object) -> Iterator[dict[str, dict[str, str]]]:
    """Yield the tools of an item: most vendors have one in each, Gemini all in one."""
    if isinstance(item, dict):
        yield from item.get("functionDeclarations", [item])


def _find(turn: TurnView, digest: str) -> str:
    """Return the run of lines in a request that has this hash, as `digest_of` makes it."""
    steps = 0
    for item in reversed(turn.first.request.items):
        lines = "\n".join(readable(item)).split("\n")
        for start in range(len(lines)):
            hashed = blake2b(digest_size=10)
            for end in range(start, min(start + _MOST_LINES, len(lines))):
                steps += 1
                line = lines[end] if end == start else f"\n{lines[end]}"
                hashed.update(line.encode("utf-8", "surrogatepass"))
                if hashed.hexdigest() == digest:
                    return "\n".join(lines[start : end + 1])
            if steps > _MOST_STEPS:
                return ""
    return ""
