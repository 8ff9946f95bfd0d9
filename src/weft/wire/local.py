"""The dialect of the embedded model: chat messages in three roles, and nothing that its template reads.

The template is applied to the text of the messages, so a mark such as `<|im_start|>` inside a message
would begin a new one. Such marks, of the common templates, are broken up here, where the dialect is known.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from weft.errors import EmptyMessage
from weft.types.context import Context
from weft.types.escape import sendable
from weft.types.message import Message
from weft.types.receipt import Usage
from weft.types.reply import Reply

_MARK = re.compile(r"<(?=\||/?s>|(?:start|end)_of_turn>)|\[(?=/?INST\])")
_ROLES = frozenset({"system", "user", "assistant"})


def to_wire(context: Context, *, max_output_tokens: int, stream: bool = False) -> dict[str, Any]:
    """The request for a context.

    Raises:
        EmptyMessage: there is nothing to answer.
    """
    if not context.current_message.strip():
        raise EmptyMessage
    request: dict[str, Any] = {
        "messages": [wired for message in context.to_messages() if (wired := _message(message))],
        "max_tokens": max_output_tokens,
        "temperature": 0,
        "repeat_penalty": 1.1,
    }
    if stream:
        request |= {"stream": True, "stream_options": {"include_usage": True}, "return_progress": True}
    return request


def from_wire(answer: Mapping[str, Any], *, text: str | None = None) -> Reply:
    """The reply in an answer, or in the last chunk of a stream whose text was collected."""
    choice: Mapping[str, Any] = next(iter(answer.get("choices") or ()), {})
    content = (choice.get("message") or {}).get("content") or ""
    usage = answer.get("usage") or {}
    details = usage.get("prompt_tokens_details") or {}
    return Reply(
        text=content if text is None else text,
        stop_reason={"stop": "end", "length": "max_tokens"}.get(str(choice.get("finish_reason")), "end"),
        model=str(answer.get("model") or ""),
        usage=Usage(
            input_tokens=int(usage.get("prompt_tokens") or 0),
            output_tokens=int(usage.get("completion_tokens") or 0),
            cached_tokens=int(details.get("cached_tokens") or 0),
        ),
    )


def delta(chunk: Mapping[str, Any]) -> str:
    """The text that one chunk of a stream adds."""
    choice: Mapping[str, Any] = next(iter(chunk.get("choices") or ()), {})
    return str((choice.get("delta") or {}).get("content") or "")


def progress(chunk: Mapping[str, Any]) -> tuple[int, int] | None:
    """How far the model has read its prompt, if the chunk tells."""
    told = chunk.get("prompt_progress")
    return (int(told["processed"]), int(told["total"])) if told else None


def _message(message: Message) -> dict[str, str] | None:
    """One message in a role the template knows. A tool's result is told as the user's text."""
    role, text = message.role, message.content
    if role == "tool":
        text = f"Result of {message.tool_name or 'a tool'}: {text}"
    if role not in _ROLES:
        role = "user"
    harmless = _MARK.sub(r"\g<0> ", sendable(text)[0])
    return {"role": role, "content": harmless} if message.content.strip() else None
