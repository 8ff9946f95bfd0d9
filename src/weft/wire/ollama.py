"""The dialect of Ollama's chat: arguments as objects, results by name, and a window that we set ourselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from weft.types.message import Message, ToolCall
from weft.types.receipt import Usage
from weft.types.reply import Reply
from weft.wire.check import Check, is_name
from weft.wire.openai import arguments_from, text_of
from weft.wire.request import Request, picture

_ROLES = ("system", "user", "assistant", "tool")
_STOPS = {"stop": "end", "length": "max_tokens"}


def to_wire(request: Request) -> dict[str, Any]:
    """The request as JSON data. `num_ctx` is always there: the server would cut in silence otherwise."""
    options: dict[str, Any] = {"num_ctx": request.window}
    if request.max_output_tokens:
        options["num_predict"] = request.max_output_tokens
    system = [{"role": "system", "content": request.system_text}] if request.system else []
    payload: dict[str, Any] = {
        "model": request.model,
        "messages": [*system, *(_message(message) for message in request.messages)],
        "stream": request.stream,
        "options": options,
    }
    if request.tools:
        payload["tools"] = [tool.to_json_dict() for tool in request.tools]
    return payload


def from_wire(answer: Mapping[str, Any]) -> Reply:
    """The reply in an answer. Calls have no ids here, so they get their place as one."""
    message = answer.get("message") or {}
    calls = tuple(
        ToolCall(
            id=str(call.get("id") or f"call_{at}"),
            name=str((call.get("function") or {}).get("name") or ""),
            arguments=arguments_from((call.get("function") or {}).get("arguments")),
        )
        for at, call in enumerate(message.get("tool_calls") or ())
    )
    stop = _STOPS.get(str(answer.get("done_reason")), str(answer.get("done_reason") or "end"))
    return Reply(
        text=str(message.get("content") or ""),
        tool_calls=calls,
        stop_reason="tools" if calls else stop,
        usage=Usage(
            input_tokens=int(answer.get("prompt_eval_count") or 0),
            output_tokens=int(answer.get("eval_count") or 0),
            cached_tokens=int(answer.get("prompt_eval_cached_count") or 0),
        ),
        model=str(answer.get("model") or ""),
    )


def _message(message: Message) -> dict[str, Any]:
    if message.role == "tool":
        return {"role": "tool", "tool_name": message.tool_name, "content": text_of(message)}
    pictures = [data for part in message.parts if (data := picture(part)[1])]
    if message.role != "user" or len(pictures) != len(message.parts):
        wired: dict[str, Any] = {"role": message.role, "content": text_of(message)}
    else:
        wired = {"role": message.role, "content": message.content}
    if message.role == "user" and pictures:
        wired["images"] = pictures
    if message.tool_calls:
        wired["tool_calls"] = [
            {"function": {"name": call.name, "arguments": dict(call.arguments)}}
            for call in message.tool_calls
        ]
    return wired


def violations(payload: Mapping[str, Any]) -> list[str]:
    """What the provider would refuse, or cut in silence; nothing, if it would take it."""
    check = Check()
    messages = payload.get("messages")
    if not isinstance(messages, list) or not messages:
        return ["there are no messages"]
    check(any(message.get("role") == "user" for message in messages), "L6: no message of the user")
    check(messages[-1].get("role") in ("user", "tool"), "the last message is the assistant's")
    window = (payload.get("options") or {}).get("num_ctx")
    check(isinstance(window, int) and window > 0, "L7: num_ctx is not set")
    tools = payload.get("tools")
    check(tools is None or bool(tools), "tools are an empty list")
    names = [(tool.get("function") or {}).get("name") for tool in tools or ()]
    check(all(map(is_name, names)), "a tool's name has letters that are not allowed")
    _check_messages(messages, names, check)
    return check.found + check.characters(payload)


def _check_messages(messages: Sequence[Mapping[str, Any]], tools: Sequence[Any], check: Check) -> None:
    waiting: list[Any] = []
    for message in messages:
        check(message.get("role") in _ROLES, "L1: a role that is not known")
        check(isinstance(message.get("content"), str), "L4: content that is no text")
        if message.get("role") == "tool":
            check(waiting[:1] == [message.get("tool_name")], "L3: results are not in the order of the calls")
            waiting = waiting[1:]
            continue
        check(not waiting, "L3: a call without a result")
        calls = [call.get("function") or {} for call in message.get("tool_calls") or ()]
        blank = not message["content"].strip() if isinstance(message.get("content"), str) else True
        check(bool(calls) or not blank or bool(message.get("images")), "L4: a blank message")
        check(all(isinstance(call.get("arguments"), Mapping) for call in calls), "L2: arguments no object")
        check(all(call.get("name") in tools for call in calls), "a call of a tool that is not declared")
        pictures = message.get("images") or ()
        check(all(isinstance(one, str) and one for one in pictures), "L5: a picture that is not Base64")
        waiting = [call.get("name") for call in calls]
    check(not waiting, "L3: a call without a result")
