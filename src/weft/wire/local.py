"""The format of the embedded model: chat messages in three roles, without marks of its template.

The template is applied to the text of the messages, so a token such as `<|im_start|>` inside a message
would begin a new one. `types/template_tokens.py` makes such tokens plain text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from weft.errors import EmptyMessage
from weft.types.context import Context
from weft.types.escape import sendable
from weft.types.message import Message
from weft.types.reply import Reply
from weft.types.template_tokens import without_template_tokens
from weft.wire import openai

_ROLES = frozenset({"system", "user", "assistant"})


def to_wire(context: Context, *, max_output_tokens: int, stream: bool = False) -> dict[str, Any]:
    """Write the request for a context.

    Raises:
        EmptyMessage: there is nothing to answer.
    """
    if not context.current_message.strip():
        raise EmptyMessage
    request: dict[str, Any] = {
        "messages": [_message(message) for message in context.to_messages() if message.content.strip()],
        "max_tokens": max_output_tokens,
        "temperature": 0,
        "repeat_penalty": 1.1,
    }
    if stream:
        request |= {"stream": True, "stream_options": {"include_usage": True}, "return_progress": True}
    return request


def from_wire(answer: Mapping[str, Any]) -> Reply:
    """Read the reply in an answer."""
    reply = openai.from_wire(answer)
    return replace(reply, stop_reason="max_tokens" if reply.stop_reason == "max_tokens" else "end")


def progress(chunk: Mapping[str, Any]) -> tuple[int, int] | None:
    """Return how many tokens of the prompt are read, and of how many, if the chunk says so."""
    counts = chunk.get("prompt_progress")
    return (int(counts["processed"]), int(counts["total"])) if counts else None


def _message(message: Message) -> dict[str, str]:
    """Write a message in a role that the template knows. A tool's result becomes the user's text."""
    role, text = message.role, message.content
    if role == "tool":
        text = f"Result of {message.tool_name or 'a tool'}: {text}"
    content = without_template_tokens(sendable(text)[0])
    return {"role": role if role in _ROLES else "user", "content": content}
