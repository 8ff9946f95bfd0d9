"""Requests without their cache marks, and the items of which a vendor's cache sees a prefix."""

from collections.abc import Iterator, Mapping
from typing import Any

from weft.wire.marks import KEYS


def text_in(content: Any) -> str:
    """Return the text of a message of Chat Completions, which is a list of parts where it can be marked."""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content or ())


def without_marks(value: Any) -> Any:
    """Return a payload without its marks."""
    if isinstance(value, Mapping):
        return {key: without_marks(item) for key, item in value.items() if key not in KEYS}
    return [without_marks(item) for item in value] if isinstance(value, list) else value


def _holders(value: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, Mapping):
        if any(key in value for key in KEYS):
            yield value
        for item in value.values():
            yield from _holders(item)
    elif isinstance(value, list):
        for item in value:
            yield from _holders(item)


def _prompt(payload: Mapping[str, Any]) -> list[Any]:
    return [payload.get("system"), payload.get("messages")]


def marks_of(payload: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the marks of a request, in their order."""
    return [{key: holder[key] for key in KEYS if key in holder} for holder in _holders(_prompt(payload))]


def marked(payload: Mapping[str, Any]) -> list[str]:
    """Return the texts that are marked; a result stands for its text, a call for its name."""
    texts = []
    for holder in _holders(_prompt(payload)):
        inner = holder.get("content") or [holder]
        texts.append(str(inner[0].get("text") or inner[0].get("name")))
    return texts


def items_of(provider: str, payload: Mapping[str, Any]) -> list[Any]:
    """Return tools, system text and messages in the order of the cache, without marks.

    Where a vendor wants neighbors of one role as one message, its blocks are items.
    """
    plain = without_marks(dict(payload))
    head = [
        plain.get("tools"),
        plain.get("system"),
        plain.get("systemInstruction"),
        plain.get("instructions"),
    ]
    messages = plain.get("messages") or plain.get("contents") or plain.get("input")
    if provider not in ("anthropic", "gemini"):
        return [head, *messages]
    name = "content" if provider == "anthropic" else "parts"
    return [head, *((message["role"], block) for message in messages for block in message[name])]
