"""The dialect of Gemini's generateContent: turns of user and model, parts, signed thoughts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from weft.types.message import Message, ToolCall
from weft.types.receipt import Usage
from weft.types.reply import Reply
from weft.wire.check import Check, has_text, is_name
from weft.wire.request import Request, own_data, picture

_STOPS = {"STOP": "end", "MAX_TOKENS": "max_tokens"}
_UNSIGNED = "skip_thought_signature_validator"
"""Stands for the signature of a call that another model made: without any, newer models refuse it."""
_DATA = ("text", "inlineData", "functionCall", "functionResponse")


def to_wire(request: Request) -> dict[str, Any]:
    """The request as JSON data. The model is part of the address, and is noted here for that."""
    payload: dict[str, Any] = {"model": request.model}
    if request.system:
        payload["systemInstruction"] = {"parts": [{"text": request.system_text}]}
    payload["contents"] = _merged(request)
    if request.tools:
        payload["tools"] = [
            {"functionDeclarations": [tool.to_json_dict()["function"] for tool in request.tools]}
        ]
    if request.max_output_tokens:
        payload["generationConfig"] = {"maxOutputTokens": request.max_output_tokens}
    return payload


def from_wire(answer: Mapping[str, Any]) -> Reply:
    """The reply in an answer. Calls have no ids here, so they get their place as one."""
    candidate: Mapping[str, Any] = next(iter(answer.get("candidates") or ()), {})
    parts = [
        part for part in (candidate.get("content") or {}).get("parts") or () if isinstance(part, Mapping)
    ]
    calls, signed = list[ToolCall](), dict[str, Any]()
    for part in parts:
        call = part.get("functionCall")
        if isinstance(call, Mapping):
            made = ToolCall(
                id=str(call.get("id") or f"call{len(calls)}"),
                name=str(call.get("name") or ""),
                arguments=dict(call.get("args") or {}),
            )
            calls.append(made)
            if part.get("thoughtSignature"):
                signed[made.id] = {"thoughtSignature": part["thoughtSignature"]}
    model = str(answer.get("modelVersion") or "")
    told = answer.get("usageMetadata") or {}
    return Reply(
        text="".join(str(p.get("text") or "") for p in parts if not p.get("thought")),
        tool_calls=tuple(calls),
        stop_reason="tools" if calls else _STOPS.get(str(candidate.get("finishReason")), "end"),
        usage=Usage(
            input_tokens=int(told.get("promptTokenCount") or 0),
            output_tokens=int(told.get("candidatesTokenCount") or 0)
            + int(told.get("thoughtsTokenCount") or 0),
            cached_tokens=int(told.get("cachedContentTokenCount") or 0),
        ),
        model=model,
        provider_data={"provider": "gemini", "model": model, "calls": signed} if signed else {},
    )


def _merged(request: Request) -> list[dict[str, Any]]:
    """Neighbours of one role become one turn."""
    merged: list[dict[str, Any]] = []
    for message in request.messages:
        role = "model" if message.role == "assistant" else "user"
        if not merged or merged[-1]["role"] != role:
            merged.append({"role": role, "parts": []})
        merged[-1]["parts"] += _parts(message, request)
    return merged


def _parts(message: Message, request: Request) -> Iterator[dict[str, Any]]:
    if message.role == "tool":
        result = {"name": message.tool_name, "response": {"result": message.content}}
        yield {"functionResponse": result}
        return
    if message.content.strip():
        yield {"text": message.content}
    for part in message.parts:
        media, data = picture(part)
        if data:
            yield {"inlineData": {"mimeType": media, "data": data}}
        else:
            yield {"text": f"[{media} was left out]"}
    signed = own_data(message, request).get("calls") or {}
    for at, call in enumerate(message.tool_calls):
        wired: dict[str, Any] = {"functionCall": {"name": call.name, "args": dict(call.arguments)}}
        signature = (signed.get(call.id) or {}).get("thoughtSignature")
        if signature or at == 0:
            wired["thoughtSignature"] = signature or _UNSIGNED
        yield wired


def violations(payload: Mapping[str, Any]) -> list[str]:
    """What the provider would refuse; nothing, if it would take it."""
    check = Check()
    contents = payload.get("contents")
    if not isinstance(contents, list) or not contents:
        return ["G1: there are no contents"]
    roles = [content.get("role") for content in contents]
    check(all(role in ("user", "model") for role in roles), "G1: a role that is not known")
    check(roles[0] == "user", "G2: the first turn is not the user's")
    check(roles[-1] == "user", "the last turn is the model's")
    check(all(a != b for a, b in pairwise(roles)), "G9: two turns of one role in a row")
    system = payload.get("systemInstruction")
    texts = [part.get("text") for part in (system or {}).get("parts") or ()]
    check(system is None or (bool(texts) and all(map(has_text, texts))), "G3: a blank system text")
    names = [
        tool.get("name")
        for group in payload.get("tools") or ()
        for tool in group.get("functionDeclarations") or ()
    ]
    check(payload.get("tools") is None or bool(names), "tools are an empty list")
    check(all(map(is_name, names)), "a tool's name has letters that are not allowed")
    check(len(names) == len(set(names)), "two tools of one name")
    _check_turns(contents, names, check)
    return check.found + check.characters(payload)


def _check_turns(contents: Sequence[Mapping[str, Any]], tools: Sequence[Any], check: Check) -> None:
    waiting: list[Any] = []
    for content in contents:
        parts = content.get("parts") or ()
        check(bool(parts), "G3: a turn without parts")
        for part in parts:
            check(sum(key in part for key in _DATA) == 1, "G3: a part with no data, or with several")
            check("text" not in part or has_text(part["text"]), "G3: a blank text")
        calls = [part["functionCall"] for part in parts if "functionCall" in part]
        results = [part["functionResponse"] for part in parts if "functionResponse" in part]
        check(not calls or content.get("role") == "model", "G4: a call that is not the model's")
        check([result.get("name") for result in results] == waiting, "G5: calls and results do not match")
        check(all(isinstance(r.get("response"), Mapping) for r in results), "G7: a result that is no object")
        check(all(isinstance(call.get("args"), Mapping) for call in calls), "arguments that are no object")
        check(all(call.get("name") in tools for call in calls), "a call of a tool that is not declared")
        first = next((part for part in parts if "functionCall" in part), {"thoughtSignature": ""})
        check("thoughtSignature" in first, "G6: the first call of a turn is not signed")
        waiting = [call.get("name") for call in calls]
    check(not waiting, "G5: a call without a result")
