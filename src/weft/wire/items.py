"""A request taken apart into items, and put together again byte for byte.

Items are stored once by their hash, and two requests are compared item by item. Cache marks move from request
to request, so they are kept apart from the items.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any

from weft.types.codec import to_dict
from weft.types.context import Context
from weft.types.memo import Memo
from weft.types.message import ToolDefinition
from weft.types.sent import SentRequest
from weft.wire.clean import compact, plain

_ORDER = ("tools", "system", "systemInstruction", "instructions", "messages", "contents", "input")
"""The parts of a request that become items, in the order in which providers read and cache them."""
_MARKS = ("cache_control", "prompt_cache_breakpoint")
_ITEMS, _WHOLE = "$items", "$whole"


def split(payload: Mapping[str, Any], body: bytes = b"") -> SentRequest:
    """Take a request apart. `body` is the request as it was sent, where that is known."""
    head, items, marks = dict(payload), list[str](), list[Any]()
    for name in (name for name in _ORDER if name in payload):
        value = payload[name]
        parts = value if isinstance(value, list) else [value]
        head[name] = {_ITEMS: len(parts), _WHOLE: not isinstance(value, list)}
        for part in parts:
            plain_part, found = _without_marks(part)
            marks += [[len(items), *mark] for mark in found]
            items.append(compact(plain_part))
    return SentRequest(
        head=compact(head),
        items=tuple(items),
        marks=compact(marks),
        digest=digest_of_bytes(body or encode(payload)),
    )


def join(request: SentRequest) -> dict[str, Any]:
    """Put a request together again, in the order of its keys."""
    head, items = json.loads(request.head), [json.loads(item) for item in request.items]
    for at, path, name, value in json.loads(request.marks):
        place = items[at]
        for step in path:
            place = place[step]
        place[name] = value
    start = 0
    for name in (name for name in _ORDER if name in head):
        number, is_whole = head[name][_ITEMS], head[name][_WHOLE]
        parts = items[start : start + number]
        head[name] = parts[0] if is_whole else parts
        start += number
    return dict(head)


def encode(payload: Mapping[str, Any]) -> bytes:
    """Write a request as the bytes that are sent."""
    return compact(payload).encode()


def digest_of_bytes(body: bytes) -> str:
    return sha256(body).hexdigest()


def kinds(request: SentRequest) -> list[str]:
    """Return for each item the part of the request that it is in: `tools`, `system` or `messages`."""
    head, names = json.loads(request.head), list[str]()
    for name in (name for name in _ORDER if name in head):
        at = _ORDER.index(name)
        names += ["tools" if at == 0 else "system" if at < 4 else "messages"] * int(head[name][_ITEMS])
    return names


def plain_payload(context: Context) -> dict[str, Any]:
    """Return the request of a provider that does not say what it sends: what the context shows."""
    system, messages = context.to_api_messages()
    return {
        "model": context.model or "",
        "tools": [_plain_tool(tool) for tool in context.tools],
        "system": plain(system),
        "messages": [
            {
                "role": plain(message.role),
                "content": plain(message.content),
                **(
                    {"tool_calls": [plain(to_dict(call)) for call in message.tool_calls]}
                    if message.tool_calls
                    else {}
                ),
                **({"tool_call_id": plain(message.tool_call_id)} if message.tool_call_id else {}),
                **({"parts": plain(message.parts)} if message.parts else {}),
            }
            for message in messages
        ],
    }


_plain_tool = Memo[ToolDefinition, Any](lambda tool: plain(tool.to_json_dict()))


def _without_marks(part: Any) -> tuple[Any, list[tuple[list[Any], str, Any]]]:
    """Return an item without its cache marks, and the marks: where each was, its name and its value."""
    if not isinstance(part, Mapping):
        return part, []
    found = list(_marks(part, []))
    if not found:
        return part, []
    bare = json.loads(compact(part))
    for path, name, _ in found:
        place = bare
        for step in path:
            place = place[step]
        del place[name]
    return bare, found


def _marks(part: Mapping[str, Any], path: list[Any]) -> Iterator[tuple[list[Any], str, Any]]:
    for name in _MARKS:
        if name in part:
            yield path, name, part[name]
    for key in ("content", "parts"):
        blocks = part.get(key)
        if isinstance(blocks, list):
            for at, block in enumerate(blocks):
                if isinstance(block, Mapping):
                    yield from ((([*path, key, at], name, block[name])) for name in _MARKS if name in block)
