"""OpenAI's Chat Completions, which OpenRouter and many others speak too."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from weft.types.message import Message, ToolCall
from weft.types.reply import Reply
from weft.wire.check import Check, has_text, is_name
from weft.wire.clean import compact
from weft.wire.marks import MOST_MARKS, Block, count_marks, places
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
_CONTROL = {"cache_control": {"type": "ephemeral"}}
_BREAKPOINT = {"prompt_cache_breakpoint": {"mode": "explicit"}}
_RULE = Rule(longest_id=40, system_inside=True)


def _to_wire(request: WireRequest) -> dict[str, Any]:
    """Write the request.

    Where the model's cache wants marks, every text is a list of parts, marked or not: a mark moves on with
    the next request, and the rest of the bytes must stay.
    """
    in_parts = bool(request.family.cache)
    system = _system(request, in_parts=in_parts)
    messages = [_message(message, in_parts=in_parts) for message in request.messages]
    if in_parts:
        _mark(request, system, messages)
    payload: dict[str, Any] = {"model": request.model, "messages": [*system, *messages]}
    if request.cache_key:
        payload["prompt_cache_key"] = request.cache_key
    if request.tools:
        payload["tools"] = [tool.to_json_dict() for tool in request.tools]
    if request.max_output_tokens:
        payload["max_completion_tokens"] = request.max_output_tokens
    if request.stream:
        payload |= {"stream": True, "stream_options": {"include_usage": True}}
    return payload


def _system(request: WireRequest, *, in_parts: bool) -> list[dict[str, Any]]:
    """Write the system message, or several."""
    if not in_parts:
        return [{"role": "system", "content": text} for text in request.system_texts]
    texts = [_text(part) for part in request.system if part.strip()]
    if request.is_separate:
        return [{"role": "system", "content": [text]} for text in texts]
    return [{"role": "system", "content": texts}] if texts else []


def _mark(request: WireRequest, system: list[dict[str, Any]], messages: list[dict[str, Any]]) -> None:
    """Mark the parts up to which the vendor caches the request: texts that are not the assistant's."""
    heads = [part for message in system for part in message["content"]]
    holders, blocks = list[dict[str, Any]](), list[Block]()
    for message in messages:
        is_assistant = message["role"] == "assistant"
        parts, calls = message["content"] or [], message.get("tool_calls", [])
        holders += [*parts, *calls]
        blocks += [Block(is_assistant, not is_assistant and part["type"] == "text") for part in parts]
        blocks += [Block(is_assistant, takes_mark=False) for _ in calls]
    mark = _BREAKPOINT if request.family.cache == "breakpoint" else _CONTROL
    for at in places(len(heads), request.stable_parts, blocks):
        (heads[at] if at < len(heads) else holders[at - len(heads)]).update(mark)


def _message(message: Message, *, in_parts: bool) -> dict[str, Any]:
    if message.role == "tool":
        text = text_of(message)
        content = [_text(text)] if in_parts else text
        return {"role": "tool", "tool_call_id": message.tool_call_id, "content": content}
    payload: dict[str, Any] = {"role": message.role, "content": _content(message, in_parts=in_parts)}
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


def _content(message: Message, *, in_parts: bool) -> Any:
    if message.tool_calls and not message.content.strip():
        return None
    if not message.parts or message.role != "user":
        text = text_of(message)
        return [_text(text)] if in_parts else text
    return list(content_parts(message, _text, _image))


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _image(media: str, data: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": f"data:{media};base64,{data}"}}


def from_wire(answer: Mapping[str, Any]) -> Reply:
    """Read the reply in an answer."""
    choice: Mapping[str, Any] = next(iter(answer.get("choices") or ()), {})
    message = choice.get("message") or {}
    details = "prompt_tokens_details"
    names = "prompt_tokens", "completion_tokens", f"{details}.cached_tokens", f"{details}.cache_write_tokens"
    return Reply(
        text=str(message.get("content") or ""),
        tool_calls=tuple(call_from(call) for call in message.get("tool_calls") or ()),
        stop_reason=_STOPS.get(str(choice.get("finish_reason")), str(choice.get("finish_reason") or "end")),
        usage=usage_of(answer.get("usage") or {}, *names),
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
    _check_parts(messages, check)
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
            check(
                bool(content) and (isinstance(content, list) or has_text(content)),
                "OA4: a result without text",
            )
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


def _check_parts(messages: Sequence[Mapping[str, Any]], check: Check) -> None:
    contents = [message.get("content") for message in messages]
    parts = [part for content in contents if isinstance(content, list) for part in content]
    texts = [part for part in parts if part.get("type") == "text"]
    check(all(has_text(part.get("text")) for part in texts), "OA4: a part with a blank text")
    check(count_marks(parts) <= MOST_MARKS, "OA7: more than four cache marks")
    check(count_marks(parts) == count_marks(texts), "OA7: a cache mark on a part that is no text")


def _is_object(text: Any) -> bool:
    try:
        return isinstance(text, str) and isinstance(json.loads(text), dict)
    except ValueError:
        return False


_AUTOMATIC = Model(
    start="", cache_seconds=600, cache_read=0.1, cache_min=1024, ratios={}, bytes_per_token=0.0
)
"""The cache of models before GPT-5.6 finds equal beginnings itself, and writing to it is free.

Their vocabulary is o200k, by which we count: one of our tokens is one of theirs in every script.
"""
_MARKED = replace(
    _AUTOMATIC, window=400_000, max_output=64_000, cache="breakpoint", cache_seconds=1800, cache_write=1.25
)

OPENAI = Vendor(
    name="openai",
    address="https://api.openai.com/v1",
    address_variable="OPENAI_BASE_URL",
    key_variable="OPENAI_API_KEY",
    path="/chat/completions",
    headers={"authorization": "Bearer {key}"},
    takes_cache_key=True,
    default_model="gpt-5.6",
    models=(
        *(replace(_MARKED, start=f"gpt-{number}") for number in ("5.6", "5.7", "5.8", "5.9", "6")),
        replace(_AUTOMATIC, start="gpt-5", window=400_000, max_output=64_000),
        replace(_AUTOMATIC, start="gpt-4o", window=128_000, max_output=16_384, cache_read=0.5),
        replace(_AUTOMATIC, start="gpt-4.1", window=1_000_000, max_output=32_768, cache_read=0.25),
    ),
    rule=_RULE,
    to_wire=_to_wire,
    from_wire=from_wire,
    violations=_violations,
    assembler=ChatAssembler,
)
