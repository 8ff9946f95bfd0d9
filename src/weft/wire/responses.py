"""OpenAI's Responses: one list of items, calls and results among them, reasoning in groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from weft.types.message import Message, ToolCall
from weft.types.reply import Reply
from weft.wire.check import Check, has_text
from weft.wire.clean import compact
from weft.wire.openai import OPENAI
from weft.wire.vendor import (
    Assembler,
    Rule,
    WireRequest,
    arguments_from,
    content_parts,
    left_out,
    text_of,
    usage_of,
)


def _to_wire(request: WireRequest) -> dict[str, Any]:
    """Write the request. The vendor stores nothing: the history is ours."""
    payload: dict[str, Any] = {"model": request.model}
    if request.system:
        payload["instructions"] = request.system_text
    payload["input"] = [item for message in request.messages for item in _items(message, request)]
    if request.tools:
        payload["tools"] = [
            {"type": "function", **tool.to_json_dict()["function"], "strict": False} for tool in request.tools
        ]
    if request.max_output_tokens:
        payload["max_output_tokens"] = request.max_output_tokens
    if request.cache_key:
        payload["prompt_cache_key"] = request.cache_key
    payload |= {"store": False, "include": ["reasoning.encrypted_content"]}
    return payload | ({"stream": True} if request.stream else {})


def _items(message: Message, request: WireRequest) -> Iterator[dict[str, Any]]:
    if message.role == "tool":
        yield {"type": "function_call_output", "call_id": message.tool_call_id, "output": text_of(message)}
        return
    yield from (dict(item) for item in request.signed_data(message).get("reasoning") or ())
    content = list(_content(message))
    if content:
        yield {"type": "message", "role": message.role, "content": content}
    for call in message.tool_calls:
        yield {
            "type": "function_call",
            "call_id": call.id,
            "name": call.name,
            "arguments": compact(dict(call.arguments)),
        }


def _content(message: Message) -> Iterator[dict[str, Any]]:
    kind = "output_text" if message.role == "assistant" else "input_text"

    def image(media: str, data: str) -> dict[str, Any]:
        if message.role != "user":
            return {"type": kind, "text": left_out(media)}
        return {"type": "input_image", "image_url": f"data:{media};base64,{data}"}

    return content_parts(message, lambda text: {"type": kind, "text": text}, image)


def _from_wire(answer: Mapping[str, Any]) -> Reply:
    """Read the reply. Its reasoning goes back whole, or not at all."""
    items = [item for item in answer.get("output") or () if isinstance(item, Mapping)]
    texts = [
        str(part.get("text") or "")
        for item in items
        if item.get("type") == "message"
        for part in item.get("content") or ()
        if part.get("type") == "output_text"
    ]
    calls = tuple(
        ToolCall(
            id=str(item.get("call_id") or ""),
            name=str(item.get("name") or ""),
            arguments=arguments_from(item.get("arguments")),
        )
        for item in items
        if item.get("type") == "function_call"
    )
    reasoning = [dict(item) for item in items if item.get("type") == "reasoning"]
    model = str(answer.get("model") or "")
    is_cut = (answer.get("incomplete_details") or {}).get("reason") == "max_output_tokens"
    details = "input_tokens_details"
    names = "input_tokens", "output_tokens", f"{details}.cached_tokens", f"{details}.cache_write_tokens"
    signed = {"provider": "openai_responses", "model": model, "reasoning": reasoning}
    return Reply(
        text="".join(texts),
        tool_calls=calls,
        stop_reason="max_tokens" if is_cut else "tools" if calls else "end",
        usage=usage_of(answer.get("usage") or {}, *names),
        model=model,
        provider_data=signed if reasoning else {},
    )


class _Assembler(Assembler):
    def add(self, event: Mapping[str, Any]) -> str:
        kind = event.get("type")
        if kind == "response.failed":
            return self.fail(event.get("response") or {})
        if kind in ("response.completed", "response.incomplete"):
            self.answer, self.done = dict(event.get("response") or {}), True
        return str(event.get("delta") or "") if kind == "response.output_text.delta" else ""


def _violations(payload: Mapping[str, Any]) -> list[str]:
    check = Check()
    items = payload.get("input")
    if not isinstance(items, list) or not items:
        return ["there is no input"]
    tools = payload.get("tools")
    names = [tool.get("name") for tool in tools or ()]
    check.tools(tools, names)
    check("instructions" not in payload or has_text(payload["instructions"]), "blank instructions")
    _check_items(items, check)
    return check.violations_of(payload)


def _check_items(items: Sequence[Mapping[str, Any]], check: Check) -> None:
    calls, outputs = list[Any](), list[Any]()
    for at, item in enumerate(items):
        kind = item.get("type")
        if kind == "function_call":
            calls.append(item.get("call_id"))
            check(isinstance(item.get("arguments"), str), "arguments that are no text")
        elif kind == "function_call_output":
            check(item.get("call_id") in calls, "R1: a result before its call")
            check(isinstance(item.get("output"), str), "R1: a result that is no text")
            outputs.append(item.get("call_id"))
        elif kind == "reasoning":
            following = items[at + 1].get("type") if at + 1 < len(items) else None
            check(following in ("message", "function_call", "reasoning"), "R2: reasoning without its item")
            check("summary" in item, "R3: reasoning without its summary")
        elif kind == "message":
            parts = item.get("content") or ()
            check(bool(parts), "a message without content")
            check(all(has_text(part.get("text")) for part in parts if "text" in part), "a blank text")
        else:
            check(False, "an item of a kind that is not known")
    check(sorted(map(str, calls)) == sorted(map(str, outputs)), "R1: calls and results do not match")
    check(len(calls) == len(set(calls)), "R1: an id that is used twice")
    last = items[-1]
    asks = last.get("type") == "function_call_output" or last.get("role") in ("user", "system")
    check(asks, "the last item is the assistant's")


RESPONSES = replace(
    OPENAI,
    name="openai_responses",
    key_name="openai",
    path="/responses",
    rule=Rule(system_inside=True),
    to_wire=_to_wire,
    from_wire=_from_wire,
    violations=_violations,
    assembler=_Assembler,
)
