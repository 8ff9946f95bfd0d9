"""The dialect of OpenAI's Chat Completions, which OpenRouter and many others speak too."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from weft.types.message import Message, ToolCall
from weft.types.receipt import Usage
from weft.types.reply import Reply
from weft.wire.check import Check, has_text, is_name
from weft.wire.clean import compact
from weft.wire.request import Request, picture

_STOPS = {"stop": "end", "length": "max_tokens", "tool_calls": "tools", "function_call": "tools"}
_ROLES = ("system", "user", "assistant", "tool")
_LONGEST_ID = 40


def to_wire(request: Request) -> dict[str, Any]:
    """The request as JSON data."""
    payload: dict[str, Any] = {"model": request.model}
    system = _system(request)
    payload["messages"] = [*system, *(_message(message) for message in request.messages)]
    if request.tools:
        payload["tools"] = [tool.to_json_dict() for tool in request.tools]
    if request.max_output_tokens:
        payload["max_completion_tokens"] = request.max_output_tokens
    if request.stream:
        payload |= {"stream": True, "stream_options": {"include_usage": True}}
    return payload


def from_wire(answer: Mapping[str, Any]) -> Reply:
    """The reply in an answer."""
    choice: Mapping[str, Any] = next(iter(answer.get("choices") or ()), {})
    message = choice.get("message") or {}
    return Reply(
        text=str(message.get("content") or ""),
        tool_calls=tuple(call_from(call) for call in message.get("tool_calls") or ()),
        stop_reason=_STOPS.get(str(choice.get("finish_reason")), str(choice.get("finish_reason") or "end")),
        usage=usage(answer.get("usage") or {}),
        model=str(answer.get("model") or ""),
    )


def call_from(call: Mapping[str, Any]) -> ToolCall:
    """A call as it is written here; arguments that are no JSON object are kept as text."""
    function = call.get("function") or {}
    return ToolCall(
        id=str(call.get("id") or ""),
        name=str(function.get("name") or ""),
        arguments=arguments_from(function.get("arguments")),
    )


def arguments_from(given: Any) -> dict[str, Any]:
    """The arguments of a call. A model's broken JSON is kept under `_raw`, so that it can be told of it."""
    if isinstance(given, Mapping):
        return dict(given)
    try:
        parsed = json.loads(given) if given else {}
    except (ValueError, TypeError, RecursionError):
        return {"_raw": str(given)}
    return parsed if isinstance(parsed, dict) else {"_raw": str(given)}


def usage(told: Mapping[str, Any]) -> Usage:
    details = told.get("prompt_tokens_details") or {}
    return Usage(
        input_tokens=int(told.get("prompt_tokens") or 0),
        output_tokens=int(told.get("completion_tokens") or 0),
        cached_tokens=int(details.get("cached_tokens") or 0),
    )


def _system(request: Request) -> list[dict[str, Any]]:
    """One system message; its stable part is marked where the model's cache wants that."""
    if not request.system:
        return []
    style = request.row.cache
    if not style or len(request.system) < 2:
        return [{"role": "system", "content": request.system_text}]
    head, *rest = request.system
    mark: dict[str, Any] = {"cache_control": {"type": "ephemeral"}}
    if style == "breakpoint":
        mark = {"prompt_cache_breakpoint": {"mode": "explicit"}}
    parts = [{"type": "text", "text": head, **mark}]
    parts += [{"type": "text", "text": part} for part in rest if part.strip()]
    return [{"role": "system", "content": parts}]


def _message(message: Message) -> dict[str, Any]:
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.tool_call_id, "content": text_of(message)}
    wired: dict[str, Any] = {"role": message.role, "content": _content(message)}
    if message.tool_calls:
        wired["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": compact(dict(call.arguments))},
            }
            for call in message.tool_calls
        ]
    return wired


def _content(message: Message) -> Any:
    if message.tool_calls and not message.content.strip():
        return None
    if not message.parts or message.role != "user":
        return text_of(message)
    parts: list[dict[str, Any]] = []
    if message.content.strip():
        parts.append({"type": "text", "text": message.content})
    for part in message.parts:
        media, data = picture(part)
        if data:
            parts.append({"type": "image_url", "image_url": {"url": f"data:{media};base64,{data}"}})
        else:
            parts.append({"type": "text", "text": f"[{media} was left out]"})
    return parts


def text_of(message: Message) -> str:
    """The text of a message that can have nothing else: what it had besides is named."""
    named = [f"[{picture(part)[0]} was left out]" for part in message.parts]
    return "\n".join([message.content, *named] if message.content.strip() else named or [message.content])


def violations(payload: Mapping[str, Any]) -> list[str]:
    """What the provider would refuse; nothing, if it would take it."""
    check = Check()
    messages = payload.get("messages")
    if not isinstance(messages, list) or not messages:
        return ["there are no messages"]
    tools = payload.get("tools")
    check(tools is None or bool(tools), "OA2: tools are an empty list")
    names = [(tool.get("function") or {}).get("name") for tool in tools or ()]
    check(all(map(is_name, names)), "OA3: a tool's name has letters that are not allowed")
    check(len(names) == len(set(names)), "OA3: two tools of one name")
    check(messages[-1].get("role") in ("user", "tool"), "OA6: the last message is the assistant's")
    _check_messages(messages, names, check)
    return check.found + check.characters(payload)


def _check_messages(messages: Sequence[Mapping[str, Any]], tools: Sequence[Any], check: Check) -> None:
    open_calls: list[Any] = []
    ids: list[Any] = []
    for message in messages:
        role, content, calls = message.get("role"), message.get("content"), message.get("tool_calls")
        check(role in _ROLES, "a role that is not known")
        if role == "tool":
            check(message.get("tool_call_id") in open_calls, "OA1: a result without its call")
            open_calls = [id_ for id_ in open_calls if id_ != message.get("tool_call_id")]
            check(has_text(content), "OA4: a result without text")
            continue
        check(not open_calls, "OA1: a call that is not answered at once")
        check(calls is None or bool(calls), "OA2: tool_calls are an empty list")
        check(content is not None or bool(calls), "OA4: no content and no calls")
        check(content is None or isinstance(content, list) or has_text(content), "OA4: a blank text")
        check(not isinstance(content, list) or bool(content), "OA4: an empty list of parts")
        open_calls = [call.get("id") for call in calls or ()]
        ids += open_calls
        for call in calls or ():
            function = call.get("function") or {}
            check(role == "assistant", "OA1: a call that is not the assistant's")
            check(function.get("name") in tools, "a call of a tool that is not declared")
            check(_is_object(function.get("arguments")), "OA3: arguments that are no JSON object as text")
            fits = is_name(call.get("id")) and len(call["id"]) <= _LONGEST_ID
            check(fits, "OA3: an id that is too long or has letters that are not allowed")
    check(not open_calls, "OA1: a call without a result")
    check(len(ids) == len(set(ids)), "OA1: an id that is used twice")


def _is_object(text: Any) -> bool:
    try:
        return isinstance(text, str) and isinstance(json.loads(text), dict)
    except ValueError:
        return False
