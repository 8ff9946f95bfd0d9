"""OpenAI's shapes, both ways and pure: an app's request becomes an `Ask`, our answer what it expects."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from uuid import uuid4

from weft.channels.service import Ask
from weft.errors import EmptyMessage
from weft.types.message import Message, ToolCall, ToolDefinition
from weft.types.receipt import Usage
from weft.types.reply import Reply

_FINISH = {"tools": "tool_calls", "max_tokens": "length"}


# --- what comes in


def from_chat(body: Mapping[str, Any], sender: str) -> Ask:
    """A request of Chat Completions. The last thing the user said is the message.

    Raises:
        EmptyMessage: the user said nothing.
    """
    return _ask([_message(one) for one in body["messages"]], body, _tools(body.get("tools") or ()), sender)


def from_responses(body: Mapping[str, Any], sender: str) -> Ask:
    """A request of Responses: a text, or items that are messages, calls and results.

    Raises:
        EmptyMessage: the user said nothing.
    """
    given = body["input"]
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    said = list(_messages_of(items))
    if instructions := body.get("instructions"):
        said.insert(0, Message(role="system", content=str(instructions)))
    return _ask(said, body, _tools(body.get("tools") or ()), sender)


def _ask(
    said: Sequence[Message], body: Mapping[str, Any], tools: tuple[ToolDefinition, ...], sender: str
) -> Ask:
    system = "\n\n".join(m.content for m in said if m.role in ("system", "developer") and m.content)
    rest = [m for m in said if m.role not in ("system", "developer")]
    last = max((at for at, m in enumerate(rest) if m.role == "user" and m.content.strip()), default=None)
    if last is None:
        raise EmptyMessage
    return Ask(
        text=rest[last].content,
        sender=sender,
        session=str(body.get("session") or (body.get("metadata") or {}).get("session") or ""),
        model=str(body.get("model") or ""),
        instructions=system,
        history=tuple(rest[:last]),
        steps=tuple(rest[last + 1 :]),
        tools=tools,
    )


def _message(given: Mapping[str, Any]) -> Message:
    return Message(
        role=str(given.get("role") or "user"),
        content=_text(given.get("content")),
        tool_calls=tuple(_call(call) for call in given.get("tool_calls") or ()),
        tool_call_id=given.get("tool_call_id"),
        tool_name=given.get("name") if given.get("role") == "tool" else None,
    )


def _messages_of(items: Sequence[Mapping[str, Any]]) -> Iterator[Message]:
    """Items of Responses as messages: calls of one answer stand together in one message."""
    calls: list[ToolCall] = []
    for item in items:
        if item.get("type") == "function_call":
            arguments = _arguments(item.get("arguments"))
            name = str(item.get("name") or "")
            calls.append(ToolCall(id=str(item.get("call_id") or ""), name=name, arguments=arguments))
            continue
        if calls:
            yield Message(role="assistant", content="", tool_calls=tuple(calls))
            calls = []
        if item.get("type") == "function_call_output":
            yield Message(
                role="tool", content=_text(item.get("output")), tool_call_id=str(item.get("call_id") or "")
            )
        elif item.get("type", "message") == "message":
            yield _message(item)
    if calls:
        yield Message(role="assistant", content="", tool_calls=tuple(calls))


def _text(content: Any) -> str:
    """Text, or the texts of its parts."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return "\n".join(str(part["text"]) for part in content if isinstance(part, Mapping) and part.get("text"))


def _call(call: Mapping[str, Any]) -> ToolCall:
    function = call.get("function") or {}
    return ToolCall(
        id=str(call.get("id") or ""),
        name=str(function.get("name") or ""),
        arguments=_arguments(function.get("arguments")),
    )


def _arguments(text: Any) -> dict[str, Any]:
    try:
        found = json.loads(text) if isinstance(text, str) else text
    except ValueError:
        return {}
    return dict(found) if isinstance(found, Mapping) else {}


def _tools(given: Sequence[Mapping[str, Any]]) -> tuple[ToolDefinition, ...]:
    """Functions, in the shape of either API."""
    functions = [one.get("function") or one for one in given if one.get("type", "function") == "function"]
    return tuple(
        ToolDefinition(
            name=str(function.get("name") or ""),
            description=function.get("description"),
            parameters=function.get("parameters") or {},
        )
        for function in functions
    )


# --- what goes out: Chat Completions


def new_id(kind: str) -> str:
    return f"{kind}_{uuid4().hex}"


def chat_answer(reply: Reply, answer_id: str, model: str) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
    if reply.tool_calls:
        message["tool_calls"] = [_told_call(call) for call in reply.tool_calls]
    choice = {"index": 0, "message": message, "finish_reason": _finish(reply), "logprobs": None}
    return {
        "id": answer_id,
        "object": "chat.completion",
        "created": int(time.time()),
        "model": model,
        "choices": [choice],
        "usage": _chat_usage(reply.usage),
    }


def chat_chunk(
    answer_id: str, model: str, delta: Mapping[str, Any], finish: str | None = None
) -> dict[str, Any]:
    return {
        "id": answer_id,
        "object": "chat.completion.chunk",
        "created": int(time.time()),
        "model": model,
        "choices": [{"index": 0, "delta": dict(delta), "finish_reason": finish}],
    }


def chat_end(answer_id: str, model: str, reply: Reply) -> Iterator[dict[str, Any]]:
    """The last chunks: the calls, why it ended, what it cost."""
    for at, call in enumerate(reply.tool_calls):
        yield chat_chunk(answer_id, model, {"tool_calls": [{"index": at, **_told_call(call)}]})
    yield chat_chunk(answer_id, model, {}, _finish(reply))
    yield chat_chunk(answer_id, model, {}) | {"choices": [], "usage": _chat_usage(reply.usage)}


def _told_call(call: ToolCall) -> dict[str, Any]:
    arguments = json.dumps(dict(call.arguments), ensure_ascii=False, default=str)
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def _finish(reply: Reply) -> str:
    return "tool_calls" if reply.tool_calls else _FINISH.get(reply.stop_reason, "stop")


def _chat_usage(usage: Usage | None) -> dict[str, Any]:
    told = usage or Usage(input_tokens=0, output_tokens=0)
    return {
        "prompt_tokens": told.input_tokens,
        "completion_tokens": told.output_tokens,
        "total_tokens": told.input_tokens + told.output_tokens,
        "prompt_tokens_details": {"cached_tokens": told.cached_tokens},
    }


# --- what goes out: Responses


def response(
    response_id: str, model: str, reply: Reply | None, *, item_id: str, status: str = "completed"
) -> dict[str, Any]:
    told: dict[str, Any] = {
        "id": response_id,
        "object": "response",
        "created_at": int(time.time()),
        "status": status,
        "model": model,
        "output": output_items(reply, item_id) if reply is not None else [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "temperature": None,
        "top_p": None,
    }
    if reply is not None:
        told["usage"] = _response_usage(reply.usage)
    return told


def output_items(reply: Reply, item_id: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if reply.text or not reply.tool_calls:
        items.append(text_item(item_id, reply.text, "completed"))
    for call in reply.tool_calls:
        arguments = json.dumps(dict(call.arguments), ensure_ascii=False, default=str)
        items.append(
            {
                "type": "function_call",
                "id": new_id("fc"),
                "call_id": call.id,
                "name": call.name,
                "arguments": arguments,
                "status": "completed",
            }
        )
    return items


def text_item(item_id: str, text: str, status: str) -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    content = [part] if text or status == "completed" else []
    return {"type": "message", "id": item_id, "role": "assistant", "status": status, "content": content}


def _response_usage(usage: Usage | None) -> dict[str, Any]:
    told = usage or Usage(input_tokens=0, output_tokens=0)
    return {
        "input_tokens": told.input_tokens,
        "input_tokens_details": {"cached_tokens": told.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": told.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": told.input_tokens + told.output_tokens,
    }
