"""Anthropic's Messages: system apart, results inside the user's message, cache marks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from weft.types.message import Message, ToolCall
from weft.types.receipt import Usage
from weft.types.reply import Reply
from weft.types.script import Script
from weft.wire.check import Check, has_text, is_name
from weft.wire.marks import MOST_MARKS, Block, count_marks, places
from weft.wire.vendor import (
    Assembler,
    Model,
    Rule,
    Vendor,
    WireRequest,
    arguments_from,
    content_parts,
    usage_of,
)

_STOPS = {"end_turn": "end", "stop_sequence": "end", "max_tokens": "max_tokens", "tool_use": "tools"}
_MARK = {"type": "ephemeral"}
_THINKING = ("thinking", "redacted_thinking")


def _to_wire(request: WireRequest) -> dict[str, Any]:
    """Write the request in the order in which the vendor caches it."""
    is_marked = request.family.cache == "block"
    payload: dict[str, Any] = {
        "model": request.model,
        "max_tokens": request.max_output_tokens or request.family.max_output,
    }
    if request.tools:
        payload["tools"] = [
            {
                "name": tool.name,
                **({"description": tool.description} if tool.description else {}),
                "input_schema": dict(tool.parameters),
            }
            for tool in request.tools
        ]
    system = [_text(part) for part in request.system if part.strip()]
    messages = _merge(request)
    if is_marked:
        _mark(system, request.stable_parts, messages)
    if system:
        payload["system"] = system if is_marked or request.is_separate else request.system_text
    payload["messages"] = messages
    return payload | ({"stream": True} if request.stream else {})


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _image(media: str, data: str) -> dict[str, Any]:
    return {"type": "image", "source": {"type": "base64", "media_type": media, "data": data}}


def _merge(request: WireRequest) -> list[dict[str, Any]]:
    """Write the messages; neighbors of one role become one message."""
    merged: list[dict[str, Any]] = []
    for message in request.messages:
        role = "assistant" if message.role == "assistant" else "user"
        is_new = not merged or merged[-1]["role"] != role
        blocks = list(_blocks(message, request.signed_data(message) if is_new else {}))
        if is_new:
            merged.append({"role": role, "content": blocks})
        else:
            merged[-1]["content"] += blocks
    return merged


def _blocks(message: Message, signed: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    content = list(content_parts(message, _text, _image))
    if message.role == "tool":
        yield {"type": "tool_result", "tool_use_id": message.tool_call_id, "content": content}
        return
    yield from (dict(block) for block in signed.get("thinking") or ())
    yield from content
    for call in message.tool_calls:
        yield {"type": "tool_use", "id": call.id, "name": call.name, "input": dict(call.arguments)}


def _mark(system: list[dict[str, Any]], stable: int, messages: Sequence[Mapping[str, Any]]) -> None:
    """Mark the blocks up to which the vendor caches the request."""
    pairs = [(message["role"] == "assistant", block) for message in messages for block in message["content"]]
    blocks = [Block(is_assistant, block["type"] not in _THINKING) for is_assistant, block in pairs]
    holders = [*system, *(block for _, block in pairs)]
    for at in places(len(system), stable, blocks):
        holders[at]["cache_control"] = _MARK


def _from_wire(answer: Mapping[str, Any]) -> Reply:
    blocks = [block for block in answer.get("content") or () if isinstance(block, Mapping)]
    thinking = [dict(block) for block in blocks if block.get("type") in _THINKING]
    model = str(answer.get("model") or "")
    return Reply(
        text="".join(str(block.get("text") or "") for block in blocks if block.get("type") == "text"),
        tool_calls=tuple(
            ToolCall(
                id=str(block.get("id") or ""),
                name=str(block.get("name") or ""),
                arguments=arguments_from(block.get("partial_json", "").strip() or block.get("input")),
            )
            for block in blocks
            if block.get("type") == "tool_use"
        ),
        stop_reason=_STOPS.get(str(answer.get("stop_reason")), str(answer.get("stop_reason") or "end")),
        usage=usage(answer.get("usage") or {}),
        model=model,
        provider_data={"provider": "anthropic", "model": model, "thinking": thinking} if thinking else {},
    )


def usage(table: Mapping[str, Any]) -> Usage:
    """Read the usage. The vendor counts new, cached and newly cached input apart; ours is the sum."""
    written = "cache_creation_input_tokens"
    new = usage_of(table, "input_tokens", "output_tokens", "cache_read_input_tokens", written)
    return replace(new, input_tokens=new.input_tokens + new.cached_tokens + new.written_tokens)


class _Assembler(Assembler):
    def __init__(self) -> None:
        super().__init__()
        self._blocks: dict[int, dict[str, Any]] = {}

    def add(self, event: Mapping[str, Any]) -> str:
        kind, index = event.get("type"), int(event.get("index") or 0)
        if kind == "message_start":
            self.answer = dict(event.get("message") or {})
        elif kind == "content_block_start":
            self._blocks[index] = dict(event.get("content_block") or {})
        elif kind == "content_block_delta":
            return self._delta(index, event.get("delta") or {})
        elif kind == "message_delta":
            usage = {**(self.answer.get("usage") or {}), **(event.get("usage") or {})}
            self.answer |= {**(event.get("delta") or {}), "usage": usage}
        elif kind == "message_stop":
            self.answer["content"] = [self._blocks[index] for index in sorted(self._blocks)]
            self.done = True
        return ""

    def _delta(self, index: int, delta: Mapping[str, Any]) -> str:
        block = self._blocks.setdefault(index, _text(""))
        for name in ("text", "thinking", "signature", "partial_json"):
            if name in delta:
                block[name] = str(block.get(name) or "") + str(delta[name])
        return str(delta.get("text") or "")


def _violations(payload: Mapping[str, Any]) -> list[str]:
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
    check.tools(tools, names, "A8: ", "A8: ")
    are_objects = all((tool.get("input_schema") or {}).get("type") == "object" for tool in tools or ())
    check(are_objects, "A8: a schema that is no object")
    _check_blocks(messages, names, check)
    system = payload.get("system")
    blocks = system if isinstance(system, list) else []
    check(system is None or bool(blocks) or has_text(system), "A9: the system text is blank")
    check(all(has_text(block.get("text")) for block in blocks), "A9: a blank system text")
    in_messages = [block for message in messages for block in message.get("content") or ()]
    check(count_marks([*blocks, *in_messages]) <= MOST_MARKS, "A13: more than four cache marks")
    check(int(payload.get("max_tokens") or 0) > 0, "max_tokens is missing")
    return check.violations_of(payload)


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
            kind = block.get("type")
            check(kind != "text" or has_text(block.get("text")), "A9: a blank text")
            check(kind not in _THINKING or "cache_control" not in block, "A9: a cache mark on thinking")
            check(kind != "tool_result" or bool(block.get("content")), "A10: an empty result")
        thinks = [kind in _THINKING for kind in kinds]
        check(thinks == sorted(thinks, reverse=True), "A12: thinking that is not at the start")
    check(not waiting, "A4: a call without a result")
    check(all(map(is_name, ids)), "A7: an id with letters that are not allowed")
    check(len(ids) == len(set(ids)), "A7: an id that is used twice")


_SCRIPTS: Mapping[Script, float] = {
    "latin": 1.7,
    "cyrillic": 2.0,
    "arabic": 2.3,
    "devanagari": 2.35,
    "cjk": 1.9,
    "emoji": 2.2,
    "other": 3.0,
}
"""Measured: German 1.61 (2.22 since Opus 4.7), Arabic 2.22, Hindi 2.25. The others are guesses."""
# Sources disagree on the shortest beginning that each model caches: where in doubt, a later one is followed.
_OLD = Model(
    start="",
    window=200_000,
    max_output=8_192,
    cache="block",
    cache_seconds=300,
    cache_read=0.1,
    cache_write=1.25,
    cache_min=1024,
    ratio=1.35,
    ratios=_SCRIPTS,
    bytes_per_token=0.0,
)
_NEW = replace(_OLD, ratio=1.6, ratios={**_SCRIPTS, "latin": 2.3, "cyrillic": 2.3})
"""Opus 4.7 and everything since has another tokenizer, which needs more tokens for the same text."""

ANTHROPIC = Vendor(
    name="anthropic",
    address="https://api.anthropic.com",
    address_variable="ANTHROPIC_BASE_URL",
    key_variable="ANTHROPIC_API_KEY",
    path="/v1/messages",
    models_path="/v1/models",
    headers={"x-api-key": "{key}", "anthropic-version": "2023-06-01"},
    default_model="claude-sonnet-5",
    models=(
        replace(_OLD, start="claude-haiku-4", max_output=32_000, cache_min=4096),
        replace(_NEW, start="claude-opus-4-8", max_output=32_000),
        replace(_NEW, start="claude-opus-4-7", max_output=32_000, cache_min=2048),
        replace(_OLD, start="claude-opus-4-6", max_output=32_000, cache_min=4096),
        replace(_OLD, start="claude-opus-4-5", max_output=32_000, cache_min=4096),
        replace(_OLD, start="claude-opus-4", max_output=32_000),
        replace(_NEW, start="claude-opus-5", window=1_000_000, max_output=64_000, cache_min=512),
        replace(_OLD, start="claude-sonnet-4-6", max_output=64_000, cache_min=2048),
        replace(_OLD, start="claude-sonnet-4", max_output=64_000),
        replace(_NEW, start="claude-sonnet-5", window=1_000_000, max_output=64_000),
        replace(_NEW, start="claude-fable-5", cache_min=2048),
        replace(_NEW, start="claude-mythos-5", cache_min=512),
        replace(_OLD, start="claude-3", cache_min=2048),
        replace(_NEW, start="claude-"),
    ),
    rule=Rule(user_first=True, declared_calls=True),
    to_wire=_to_wire,
    from_wire=_from_wire,
    violations=_violations,
    assembler=_Assembler,
)
