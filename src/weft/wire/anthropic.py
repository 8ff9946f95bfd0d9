"""The dialect of Anthropic's Messages: system apart, results inside the user's message, cache marks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from weft.types.message import Message, ToolCall
from weft.types.receipt import Usage
from weft.types.reply import Reply
from weft.wire.check import Check, has_text, is_name
from weft.wire.request import Request, own_data, picture

_STOPS = {"end_turn": "end", "stop_sequence": "end", "max_tokens": "max_tokens", "tool_use": "tools"}
_MARK = {"type": "ephemeral"}
_MOST_MARKS = 4


def to_wire(request: Request) -> dict[str, Any]:
    """The request as JSON data, in the order in which the provider caches it."""
    marked = request.row.cache == "block"
    payload: dict[str, Any] = {
        "model": request.model,
        "max_tokens": request.max_output_tokens or request.row.max_output,
    }
    if request.tools:
        payload["tools"] = [_tool(tool.name, tool.description, tool.parameters) for tool in request.tools]
    if request.system:
        payload["system"] = _system(request.system) if marked else request.system_text
    messages = _merged(request)
    if marked:
        _mark(messages)
    payload["messages"] = messages
    return payload | ({"stream": True} if request.stream else {})


def from_wire(answer: Mapping[str, Any]) -> Reply:
    """The reply in an answer."""
    blocks = [block for block in answer.get("content") or () if isinstance(block, Mapping)]
    thinking = [dict(block) for block in blocks if block.get("type") in ("thinking", "redacted_thinking")]
    model = str(answer.get("model") or "")
    return Reply(
        text="".join(str(block.get("text") or "") for block in blocks if block.get("type") == "text"),
        tool_calls=tuple(
            ToolCall(
                id=str(block.get("id") or ""),
                name=str(block.get("name") or ""),
                arguments=dict(block.get("input") or {}),
            )
            for block in blocks
            if block.get("type") == "tool_use"
        ),
        stop_reason=_STOPS.get(str(answer.get("stop_reason")), str(answer.get("stop_reason") or "end")),
        usage=usage(answer.get("usage") or {}),
        model=model,
        provider_data={"provider": "anthropic", "model": model, "thinking": thinking} if thinking else {},
    )


def usage(told: Mapping[str, Any]) -> Usage:
    """What was read in all is what was new, what was written to the cache, and what came from it."""
    cached = int(told.get("cache_read_input_tokens") or 0)
    written = int(told.get("cache_creation_input_tokens") or 0)
    return Usage(
        input_tokens=int(told.get("input_tokens") or 0) + written + cached,
        output_tokens=int(told.get("output_tokens") or 0),
        cached_tokens=cached,
    )


def _tool(name: str, description: str | None, parameters: Mapping[str, Any]) -> dict[str, Any]:
    told = {"description": description} if description else {}
    return {"name": name, **told, "input_schema": dict(parameters)}


def _system(parts: Sequence[str]) -> list[dict[str, Any]]:
    return [{"type": "text", "text": part, "cache_control": _MARK} for part in parts if part.strip()]


def _merged(request: Request) -> list[dict[str, Any]]:
    """Neighbours of one role become one message."""
    merged: list[dict[str, Any]] = []
    for message in request.messages:
        role = "assistant" if message.role == "assistant" else "user"
        new = not merged or merged[-1]["role"] != role
        blocks = list(_blocks(message, own_data(message, request) if new else {}))
        if new:
            merged.append({"role": role, "content": blocks})
        else:
            merged[-1]["content"] += blocks
    return merged


def _blocks(message: Message, data: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    if message.role == "tool":
        content = list(_content(message))
        yield {"type": "tool_result", "tool_use_id": message.tool_call_id, "content": content}
        return
    yield from (dict(block) for block in data.get("thinking") or ())
    yield from _content(message)
    for call in message.tool_calls:
        yield {"type": "tool_use", "id": call.id, "name": call.name, "input": dict(call.arguments)}


def _content(message: Message) -> Iterator[dict[str, Any]]:
    if message.content.strip():
        yield {"type": "text", "text": message.content}
    for part in message.parts:
        media, data = picture(part)
        if data:
            yield {"type": "image", "source": {"type": "base64", "media_type": media, "data": data}}
        else:
            yield {"type": "text", "text": f"[{media} was left out]"}


def _mark(messages: list[dict[str, Any]]) -> None:
    """Mark the end of the history, and the end of all: the next request begins with the one or the other."""
    ends = [message["content"][-1] for message in messages[-2:] if message["role"] == "user"]
    if len(messages) > 2:
        ends.insert(0, messages[-3]["content"][-1])
    for block in ends[-2:]:
        if block["type"] not in ("thinking", "redacted_thinking"):
            block["cache_control"] = _MARK


def violations(payload: Mapping[str, Any]) -> list[str]:
    """What the provider would refuse; nothing, if it would take it."""
    check = Check()
    messages = payload.get("messages")
    if not isinstance(messages, list) or not messages:
        return ["A1: there are no messages"]
    check(messages[0].get("role") == "user", "A1: the first message is not the user's")
    roles = [message.get("role") for message in messages]
    check(all(a != b for a, b in pairwise(roles)), "A2: two messages of one role in a row")
    check(all(role in ("user", "assistant") for role in roles), "A3: a role that is not known")
    check(roles[-1] == "user", "A11: the last message is not the user's")
    tools = payload.get("tools")
    names = [tool.get("name") for tool in tools or ()]
    check(tools is None or bool(tools), "A8: tools are an empty list")
    check(all(map(is_name, names)), "A8: a tool's name has letters that are not allowed")
    check(len(names) == len(set(names)), "A8: two tools of one name")
    check(
        all((tool.get("input_schema") or {}).get("type") == "object" for tool in tools or ()),
        "A8: a schema that is no object",
    )
    _check_blocks(messages, names, check)
    system = payload.get("system")
    blocks = system if isinstance(system, list) else []
    check(system is None or bool(blocks) or has_text(system), "A9: the system text is blank")
    check(all(has_text(block.get("text")) for block in blocks), "A9: a blank system text")
    marks = sum("cache_control" in block for block in [*blocks, *_all_blocks(messages)])
    check(marks <= _MOST_MARKS, "A13: more than four cache marks")
    check(int(payload.get("max_tokens") or 0) > 0, "max_tokens is missing")
    return check.found + check.characters(payload)


def _all_blocks(messages: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [block for message in messages for block in message.get("content") or ()]


def _check_blocks(messages: Sequence[Mapping[str, Any]], tools: Sequence[Any], check: Check) -> None:
    ids: list[Any] = []
    waiting: list[Any] = []
    for message in messages:
        content = message.get("content")
        if not isinstance(content, list) or not content:
            check(False, "A10: a message without content")
            continue
        kinds = [block.get("type") for block in content]
        answered = [block.get("tool_use_id") for block in content if block.get("type") == "tool_result"]
        check(sorted(map(str, answered)) == sorted(map(str, waiting)), "A4: calls and results do not match")
        check(kinds[: len(answered)] == ["tool_result"] * len(answered), "A5: something before a result")
        calls = [block for block in content if block.get("type") == "tool_use"]
        check(not calls or kinds[-len(calls) :] == ["tool_use"] * len(calls), "A6: something after a call")
        check(not calls or message.get("role") == "assistant", "A4: a call that is not the assistant's")
        waiting = [call.get("id") for call in calls]
        ids += waiting
        check(all(call.get("name") in tools for call in calls), "A16: a call of a tool that is not declared")
        check(all(isinstance(call.get("input"), Mapping) for call in calls), "A8: an input that is no object")
        for block in content:
            blank = block.get("type") == "text" and not has_text(block.get("text"))
            check(not blank, "A9: a blank text")
            thinks = block.get("type") in ("thinking", "redacted_thinking")
            check(not (thinks and "cache_control" in block), "A9: a cache mark on thinking")
            check(block.get("type") != "tool_result" or bool(block.get("content")), "A10: an empty result")
        thoughts = [kind in ("thinking", "redacted_thinking") for kind in kinds]
        check(thoughts == sorted(thoughts, reverse=True), "A12: thinking that is not at the start")
    check(not waiting, "A4: a call without a result")
    check(all(map(is_name, ids)), "A7: an id with letters that are not allowed")
    check(len(ids) == len(set(ids)), "A7: an id that is used twice")
