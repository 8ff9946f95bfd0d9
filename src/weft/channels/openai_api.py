"""OpenAI's shapes, both ways and pure: an app's request to a `TurnRequest`, our reply to what it expects."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import uuid4

from weft.errors import ConfigError, EmptyMessage
from weft.gateway.transcript import conversation_name
from weft.types.message import Message, ToolCall, ToolDefinition
from weft.types.receipt import Usage
from weft.types.reply import Reply
from weft.types.request import Caller, TurnRequest
from weft.wire.openai import call_from
from weft.wire.vendor import arguments_from

_FINISH = {"tools": "tool_calls", "max_tokens": "length"}


# --- what comes in


def from_chat(body: Mapping[str, Any], sender: str) -> TurnRequest:
    """Read a request of Chat Completions. The last thing the user said is the message.

    Raises:
        EmptyMessage: the user said nothing.
    """
    return _request([_message(one) for one in body["messages"]], body, sender)


def from_responses(body: Mapping[str, Any], sender: str) -> TurnRequest:
    """Read a request of Responses: a text, or items that are messages, calls and results.

    Raises:
        EmptyMessage: the user said nothing.
        ConfigError: it refers to an earlier answer by its id.
    """
    if body.get("previous_response_id"):
        raise ConfigError("Answers are not stored by their ids here: send the items of the conversation.")
    items = body["input"]
    items = [{"role": "user", "content": items}] if isinstance(items, str) else items
    said = list(_messages_of(items))
    if instructions := body.get("instructions"):
        said.insert(0, Message(role="system", content=str(instructions)))
    return _request(said, body, sender)


def _request(said: Sequence[Message], body: Mapping[str, Any], sender: str) -> TurnRequest:
    system = "\n\n".join(m.content for m in said if m.role in ("system", "developer") and m.content)
    rest = [m for m in said if m.role not in ("system", "developer")]
    last = max((at for at, m in enumerate(rest) if m.role == "user" and m.content.strip()), default=None)
    if last is None:
        raise EmptyMessage
    session = str(body.get("session") or (body.get("metadata") or {}).get("session") or "")
    request = TurnRequest(
        text=rest[last].content,
        caller=Caller(agent_id="weft", channel="http", sender_id=sender),
        session=session,
        model=str(body.get("model") or ""),
        instructions=system,
        history=tuple(rest[:last]),
        steps=tuple(rest[last + 1 :]),
        tools=() if body.get("tool_choice") == "none" else _tools(body.get("tools") or ()),
    )
    return request if session else replace(request, session=conversation_name(request))


def _message(item: Mapping[str, Any]) -> Message:
    return Message(
        role=str(item.get("role") or "user"),
        content=_text(item.get("content")),
        tool_calls=tuple(call_from(call) for call in item.get("tool_calls") or ()),
        tool_call_id=item.get("tool_call_id"),
        tool_name=item.get("name") if item.get("role") == "tool" else None,
        origin="import" if item.get("role") == "tool" else "user",
    )


def _messages_of(items: Sequence[Mapping[str, Any]]) -> Iterator[Message]:
    """Read items of Responses as messages. The text and the calls of one answer become one message."""
    text: Message | None = None
    calls: list[ToolCall] = []
    for item in items:
        kind = item.get("type") or "message"
        if kind == "function_call":
            calls.append(_called(item))
            continue
        if kind not in ("message", "function_call_output"):
            continue
        yield from _answer(text, calls)
        text, calls = None, []
        if kind == "function_call_output":
            call_id = str(item.get("call_id") or "")
            yield Message(
                role="tool", content=_text(item.get("output")), tool_call_id=call_id, origin="import"
            )
        elif item.get("role") == "assistant":
            text = _message(item)
        else:
            yield _message(item)
    yield from _answer(text, calls)


def _answer(text: Message | None, calls: Sequence[ToolCall]) -> Iterator[Message]:
    """Return the one message of an answer, if there is one: its text with its calls."""
    if text is not None or calls:
        answer = text or Message(role="assistant", content="")
        yield replace(answer, tool_calls=(*answer.tool_calls, *calls)) if calls else answer


def _called(item: Mapping[str, Any]) -> ToolCall:
    return ToolCall(
        id=str(item.get("call_id") or ""),
        name=str(item.get("name") or ""),
        arguments=arguments_from(item.get("arguments")),
    )


def _text(content: Any) -> str:
    """Return the text, or the texts of all parts. A part that is no text is named, not dropped in silence."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else ()
    return "\n".join(str(part.get("text") or f"[{part.get('type')} was left out]") for part in parts)


def _tools(declared: Sequence[Mapping[str, Any]]) -> tuple[ToolDefinition, ...]:
    """Read functions in the shape of either API. Other kinds of tools run at OpenAI only."""
    functions = [one.get("function") or one for one in declared if one.get("type", "function") == "function"]
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
        message["tool_calls"] = [_chat_call(call) for call in reply.tool_calls]
    choice = {"index": 0, "message": message, "finish_reason": _finish(reply), "logprobs": None}
    return {
        "id": answer_id,
        "object": "chat.completion",
        "created": int(time.time()),
        "model": model,
        "choices": [choice],
        "usage": _chat_usage(reply.usage),
        **_beyond_openai(reply),
    }


def _beyond_openai(reply: Reply) -> dict[str, Any]:
    """Write what OpenAI's format has no place for: what was remembered, and what was not done."""
    if not reply.notice:
        return {}
    return {"weft": {"notice": reply.notice} | ({"not_done": [*reply.not_done]} if reply.not_done else {})}


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
    """Write the last chunks: each call by its name and then its arguments, and the finish reason."""
    for at, call in enumerate(reply.tool_calls):
        chunk = _chat_call(call)
        function = chunk["function"]
        begun = {"index": at, **chunk, "function": {"name": function["name"], "arguments": ""}}
        rest = {"index": at, "function": {"arguments": function["arguments"]}}
        yield chat_chunk(answer_id, model, {"tool_calls": [begun]})
        yield chat_chunk(answer_id, model, {"tool_calls": [rest]})
    yield chat_chunk(answer_id, model, {}, _finish(reply)) | _beyond_openai(reply)


def chat_cost(answer_id: str, model: str, reply: Reply) -> dict[str, Any]:
    """Write the chunk with the usage, behind the last one."""
    return chat_chunk(answer_id, model, {}) | {"choices": [], "usage": _chat_usage(reply.usage)}


def _chat_call(call: ToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": _written(call)}
    return {"id": call.id, "type": "function", "function": function}


def _written(call: ToolCall) -> str:
    return json.dumps(dict(call.arguments), ensure_ascii=False, default=str)


def _finish(reply: Reply) -> str:
    return "tool_calls" if reply.tool_calls else _FINISH.get(reply.stop_reason, "stop")


def _chat_usage(usage: Usage | None) -> dict[str, Any]:
    cost = usage or Usage(input_tokens=0, output_tokens=0)
    return {
        "prompt_tokens": cost.input_tokens,
        "completion_tokens": cost.output_tokens,
        "total_tokens": cost.input_tokens + cost.output_tokens,
        "prompt_tokens_details": {
            "cached_tokens": cost.cached_tokens,
            "cache_write_tokens": cost.written_tokens,
        },
    }


# --- what goes out: Responses


def response(
    response_id: str, model: str, reply: Reply | None, *, item_id: str, status: str = "completed"
) -> dict[str, Any]:
    body: dict[str, Any] = {
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
        body |= {"usage": _response_usage(reply.usage), **_beyond_openai(reply)}
    if reply is not None and reply.stop_reason == "max_tokens":
        body |= {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    return body


def output_items(reply: Reply, item_id: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if reply.text or not reply.tool_calls:
        items.append(text_item(item_id, reply.text, "completed"))
    return items + [call_item(call, f"fc_{item_id}_{at}") for at, call in enumerate(reply.tool_calls)]


def call_item(call: ToolCall, item_id: str) -> dict[str, Any]:
    return {
        "type": "function_call",
        "id": item_id,
        "call_id": call.id,
        "name": call.name,
        "arguments": _written(call),
        "status": "completed",
    }


def text_item(item_id: str, text: str, status: str) -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    content = [part] if text or status == "completed" else []
    return {"type": "message", "id": item_id, "role": "assistant", "status": status, "content": content}


def _response_usage(usage: Usage | None) -> dict[str, Any]:
    cost = usage or Usage(input_tokens=0, output_tokens=0)
    return {
        "input_tokens": cost.input_tokens,
        "input_tokens_details": {
            "cached_tokens": cost.cached_tokens,
            "cache_write_tokens": cost.written_tokens,
        },
        "output_tokens": cost.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": cost.input_tokens + cost.output_tokens,
    }
