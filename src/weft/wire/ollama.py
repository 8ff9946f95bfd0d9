"""Ollama's chat: arguments as objects, results by name, and a window that we set ourselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from weft.types.message import Message
from weft.types.reply import Reply
from weft.types.template_tokens import data_without_template_tokens
from weft.wire.check import Check, has_text
from weft.wire.openai import call_from
from weft.wire.vendor import CAREFUL, Assembler, Model, Rule, Vendor, WireRequest, picture, text_of, usage_of

_ROLES = ("system", "user", "assistant", "tool")
_STOPS = {"stop": "end", "length": "max_tokens"}


def _to_wire(request: WireRequest) -> dict[str, Any]:
    """Write the request. Without `num_ctx` the server would cut the prompt in silence.

    The server writes all of it as one text by the model's template, so no text may have a token of one.
    """
    options: dict[str, Any] = {"num_ctx": request.window}
    if request.max_output_tokens:
        options["num_predict"] = request.max_output_tokens
    system = [{"role": "system", "content": text} for text in request.system_texts]
    payload: dict[str, Any] = {
        "model": request.model,
        "messages": data_without_template_tokens([*system, *map(_message, request.messages)]),
        "stream": request.stream,
        "options": options,
    }
    if request.tools:
        payload["tools"] = data_without_template_tokens([tool.to_json_dict() for tool in request.tools])
    return payload


def _message(message: Message) -> dict[str, Any]:
    if message.role == "tool":
        return {"role": "tool", "tool_name": message.tool_name, "content": text_of(message)}
    images = [data for part in message.parts if (data := picture(part)[1])]
    sends_all = message.role == "user" and len(images) == len(message.parts)
    payload: dict[str, Any] = {
        "role": message.role,
        "content": message.content if sends_all else text_of(message),
    }
    if message.role == "user" and images:
        payload["images"] = images
    if message.tool_calls:
        payload["tool_calls"] = [
            {"function": {"name": call.name, "arguments": dict(call.arguments)}}
            for call in message.tool_calls
        ]
    return payload


def _from_wire(answer: Mapping[str, Any]) -> Reply:
    """Read the reply. A call without an id gets its position as one."""
    message = answer.get("message") or {}
    calls = [call_from(call, f"call_{at}") for at, call in enumerate(message.get("tool_calls") or ())]
    stop = _STOPS.get(str(answer.get("done_reason")), str(answer.get("done_reason") or "end"))
    return Reply(
        text=str(message.get("content") or ""),
        tool_calls=tuple(calls),
        stop_reason="tools" if calls else stop,
        usage=usage_of(answer, "prompt_eval_count", "eval_count", "prompt_eval_cached_count"),
        model=str(answer.get("model") or ""),
    )


class _Assembler(Assembler):
    def add(self, event: Mapping[str, Any]) -> str:
        message = event.get("message") or {}
        text, calls = str(message.get("content") or ""), message.get("tool_calls") or ()
        before = self.answer.get("message") or {"content": "", "tool_calls": []}
        whole = {"content": before["content"] + text, "tool_calls": [*before["tool_calls"], *calls]}
        self.answer |= {**event, "message": whole}
        self.done = bool(event.get("done"))
        return text


def _violations(payload: Mapping[str, Any]) -> list[str]:
    """List what the server would refuse, or cut in silence."""
    check = Check()
    messages = payload.get("messages")
    if not isinstance(messages, list) or not messages:
        return ["there are no messages"]
    check(any(message.get("role") == "user" for message in messages), "L6: no message of the user")
    check(messages[-1].get("role") in ("user", "tool"), "the last message is the assistant's")
    window = (payload.get("options") or {}).get("num_ctx")
    check(isinstance(window, int) and window > 0, "L7: num_ctx is not set")
    tools = payload.get("tools")
    names = [(tool.get("function") or {}).get("name") for tool in tools or ()]
    check.tools(tools, names)
    _check_messages(messages, check)
    return check.violations_of(payload)


def _check_messages(messages: Sequence[Mapping[str, Any]], check: Check) -> None:
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
        images = message.get("images") or ()
        check(bool(calls or images) or has_text(message.get("content")), "L4: a blank message")
        check(all(isinstance(call.get("arguments"), Mapping) for call in calls), "L2: arguments no object")
        check(all(isinstance(one, str) and one for one in images), "L5: a picture that is not Base64")
        waiting = [call.get("name") for call in calls]
    check(not waiting, "L3: a call without a result")


_LOADED = Model(start="", cache_seconds=300, cache_read=0.1, ratio=1.2)
"""A model stays loaded for five minutes, and with it what it has read."""
_KNOWN = replace(_LOADED, bytes_per_token=0.0)
# Measured: Hindi 3.14 with Qwen and 1.88 with DeepSeek, emoji 2.05 with Tekken. The others are guesses.
_TEKKEN = {
    **CAREFUL,
    "cyrillic": 1.8,
    "arabic": 1.8,
    "devanagari": 2.0,
    "cjk": 1.8,
    "emoji": 2.15,
    "other": 2.5,
}
_WITH_TEKKEN = ("mistral-nemo", "ministral", "magistral", "devstral", "pixtral")

OLLAMA = Vendor(
    name="ollama",
    address="http://127.0.0.1:11434",
    address_variable="OLLAMA_HOST",
    path="/api/chat",
    models_path="/api/tags",
    show_path="/api/show",
    tells_windows=True,
    streams_lines=True,
    default_model="llama3.2",
    models=(
        replace(_KNOWN, start="qwen", ratios={**CAREFUL, "arabic": 2.4, "devanagari": 3.25, "cjk": 1.4}),
        replace(_LOADED, start="deepseek-r1"),  # most of them have the vocabulary of another model
        replace(_KNOWN, start="deepseek", ratios={**CAREFUL, "arabic": 2.2, "devanagari": 2.0, "cjk": 1.4}),
        *(replace(_KNOWN, start=name, ratios=_TEKKEN) for name in _WITH_TEKKEN),
    ),
    unknown=_LOADED,
    rule=Rule(system_inside=True),
    to_wire=_to_wire,
    from_wire=_from_wire,
    violations=_violations,
    assembler=_Assembler,
)
