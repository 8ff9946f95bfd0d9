"""OpenAI's Chat Completions, which OpenRouter and many others speak too."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from weft.types.message import Message, ToolCall
from weft.types.reply import Reply
from weft.wire.check import Check, has_text, is_name
from weft.wire.clean import compact
from weft.wire.vendor import (
    Assembler,
    Model,
    Rule,
    Vendor,
    WireRequest,
    arguments_from,
    content_parts,
    text_of,
    usage_of,
)

_STOPS = {"stop": "end", "length": "max_tokens", "tool_calls": "tools", "function_call": "tools"}
_ROLES = ("system", "user", "assistant", "tool")
_RULE = Rule(longest_id=40, system_inside=True)


def _to_wire(request: WireRequest) -> dict[str, Any]:
    messages = [*_system(request), *map(_message, request.messages)]
    payload: dict[str, Any] = {"model": request.model, "messages": messages}
    if request.tools:
        payload["tools"] = [tool.to_json_dict() for tool in request.tools]
    if request.max_output_tokens:
        payload["max_completion_tokens"] = request.max_output_tokens
    if request.stream:
        payload |= {"stream": True, "stream_options": {"include_usage": True}}
    return payload


def _system(request: WireRequest) -> list[dict[str, Any]]:
    """Write the system message, or several. The stable part is marked where the model's cache wants that."""
    style, stable = request.family.cache, request.stable_parts
    if not style or not 0 < stable < len(request.system):
        return [{"role": "system", "content": text} for text in request.system_texts]
    mark: dict[str, Any] = {"cache_control": {"type": "ephemeral"}}
    if style == "breakpoint":
        mark = {"prompt_cache_breakpoint": {"mode": "explicit"}}
    texts = [_text(part) for part in request.system if part.strip()]
    texts[stable - 1] |= mark
    if request.is_separate:
        return [{"role": "system", "content": [text]} for text in texts]
    return [{"role": "system", "content": texts}]


def _message(message: Message) -> dict[str, Any]:
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.tool_call_id, "content": text_of(message)}
    payload: dict[str, Any] = {"role": message.role, "content": _content(message)}
    if message.tool_calls:
        payload["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": compact(dict(call.arguments))},
            }
            for call in message.tool_calls
        ]
    return payload


def _content(message: Message) -> Any:
    if message.tool_calls and not message.content.strip():
        return None
    if not message.parts or message.role != "user":
        return text_of(message)
    return list(content_parts(message, _text, _image))


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _image(media: str, data: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": f"data:{media};base64,{data}"}}


def from_wire(answer: Mapping[str, Any]) -> Reply:
    """Read the reply in an answer."""
    choice: Mapping[str, Any] = next(iter(answer.get("choices") or ()), {})
    message = choice.get("message") or {}
    usage = answer.get("usage") or {}
    return Reply(
        text=str(message.get("content") or ""),
        tool_calls=tuple(call_from(call) for call in message.get("tool_calls") or ()),
        stop_reason=_STOPS.get(str(choice.get("finish_reason")), str(choice.get("finish_reason") or "end")),
        usage=usage_of(usage, "prompt_tokens", "completion_tokens", "prompt_tokens_details.cached_tokens"),
        model=str(answer.get("model") or ""),
    )


def call_from(call: Mapping[str, Any], missing_id: str = "") -> ToolCall:
    """Read a call. Arguments that are no JSON object are kept as text."""
    function = call.get("function") or {}
    return ToolCall(
        id=str(call.get("id") or missing_id),
        name=str(function.get("name") or ""),
        arguments=arguments_from(function.get("arguments")),
    )


class ChatAssembler(Assembler):
    """Puts together the chunks of Chat Completions."""

    def __init__(self) -> None:
        super().__init__()
        self._text, self._finish = "", None
        self._calls: dict[int, dict[str, Any]] = {}

    def add(self, event: Mapping[str, Any]) -> str:
        self.answer |= {key: event[key] for key in ("id", "model", "usage") if event.get(key)}
        choice: Mapping[str, Any] = next(iter(event.get("choices") or ()), {})
        delta = choice.get("delta") or {}
        for part in delta.get("tool_calls") or ():
            empty: dict[str, Any] = {"id": "", "function": {"name": "", "arguments": ""}}
            call = self._calls.setdefault(int(part.get("index") or 0), empty)
            call["id"] = part.get("id") or call["id"]
            for name in ("name", "arguments"):
                call["function"][name] += str((part.get("function") or {}).get(name) or "")
        text = str(delta.get("content") or "")
        self._text += text
        self._finish = choice.get("finish_reason") or self._finish
        self.done = self._finish is not None
        message = {"content": self._text, "tool_calls": [self._calls[at] for at in sorted(self._calls)]}
        self.answer["choices"] = [{"message": message, "finish_reason": self._finish}]
        return text


def _violations(payload: Mapping[str, Any]) -> list[str]:
    check = Check()
    messages = payload.get("messages")
    if not isinstance(messages, list) or not messages:
        return ["there are no messages"]
    tools = payload.get("tools")
    names = [(tool.get("function") or {}).get("name") for tool in tools or ()]
    check.tools(tools, names, "OA2: ", "OA3: ")
    check(messages[-1].get("role") in ("user", "tool"), "OA6: the last message is the assistant's")
    _check_messages(messages, check)
    return check.violations_of(payload)


def _check_messages(messages: Sequence[Mapping[str, Any]], check: Check) -> None:
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
            check(_is_object(function.get("arguments")), "OA3: arguments that are no JSON object as text")
            fits = is_name(call.get("id")) and len(call["id"]) <= _RULE.longest_id
            check(fits, "OA3: an id that is too long or has letters that are not allowed")
    check(not open_calls, "OA1: a call without a result")
    check(len(ids) == len(set(ids)), "OA1: an id that is used twice")


def _is_object(text: Any) -> bool:
    try:
        return isinstance(text, str) and isinstance(json.loads(text), dict)
    except ValueError:
        return False


OPENAI = Vendor(
    name="openai",
    address="https://api.openai.com/v1",
    address_variable="OPENAI_BASE_URL",
    key_variable="OPENAI_API_KEY",
    path="/chat/completions",
    headers={"authorization": "Bearer {key}"},
    default_model="gpt-5.6",
    models=(
        Model(start="gpt-5.6", window=400_000, max_output=64_000, cache="breakpoint"),
        Model(start="gpt-5", window=400_000, max_output=64_000),
        Model(start="gpt-4o", window=128_000, max_output=16_384),
        Model(start="gpt-4.1", window=1_000_000, max_output=32_768),
    ),
    rule=_RULE,
    to_wire=_to_wire,
    from_wire=from_wire,
    violations=_violations,
    assembler=ChatAssembler,
)
