"""Gemini's generateContent: turns of user and model, parts, signed thoughts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from weft.types.message import Message, ToolCall
from weft.types.reply import Reply
from weft.wire.check import Check, has_text
from weft.wire.vendor import Assembler, Model, Rule, Vendor, WireRequest, content_parts, usage_of

_STOPS = {"STOP": "end", "MAX_TOKENS": "max_tokens"}
_UNSIGNED = "skip_thought_signature_validator"
"""The signature of a call that another model made. Newer models refuse a call without any."""
_DATA = ("text", "inlineData", "functionCall", "functionResponse")


def _to_wire(request: WireRequest) -> dict[str, Any]:
    """Write the request. The model is in the path; it is repeated here for the reader."""
    payload: dict[str, Any] = {"model": request.model}
    if request.system:
        payload["systemInstruction"] = {"parts": [_text(request.system_text)]}
    payload["contents"] = _merge(request)
    if request.tools:
        payload["tools"] = [
            {"functionDeclarations": [tool.to_json_dict()["function"] for tool in request.tools]}
        ]
    if request.max_output_tokens:
        payload["generationConfig"] = {"maxOutputTokens": request.max_output_tokens}
    return payload


def _text(text: str) -> dict[str, Any]:
    return {"text": text}


def _image(media: str, data: str) -> dict[str, Any]:
    return {"inlineData": {"mimeType": media, "data": data}}


def _merge(request: WireRequest) -> list[dict[str, Any]]:
    """Write the messages; neighbors of one role become one turn."""
    merged: list[dict[str, Any]] = []
    for message in request.messages:
        role = "model" if message.role == "assistant" else "user"
        if not merged or merged[-1]["role"] != role:
            merged.append({"role": role, "parts": []})
        merged[-1]["parts"] += _parts(message, request)
    return merged


def _parts(message: Message, request: WireRequest) -> Iterator[dict[str, Any]]:
    if message.role == "tool":
        result = {"name": message.tool_name, "response": {"result": message.content}}
        yield {"functionResponse": result}
        return
    yield from content_parts(message, _text, _image)
    signed = request.signed_data(message).get("calls") or {}
    for at, call in enumerate(message.tool_calls):
        part: dict[str, Any] = {"functionCall": {"name": call.name, "args": dict(call.arguments)}}
        signature = (signed.get(call.id) or {}).get("thoughtSignature")
        if signature or at == 0:
            part["thoughtSignature"] = signature or _UNSIGNED
        yield part


def _from_wire(answer: Mapping[str, Any]) -> Reply:
    """Read the reply. A call without an id gets its position as one."""
    candidate: Mapping[str, Any] = next(iter(answer.get("candidates") or ()), {})
    parts = [
        part for part in (candidate.get("content") or {}).get("parts") or () if isinstance(part, Mapping)
    ]
    calls, signed = list[ToolCall](), dict[str, Any]()
    for part in parts:
        function = part.get("functionCall")
        if isinstance(function, Mapping):
            id_ = str(function.get("id") or f"call{len(calls)}")
            name, arguments = str(function.get("name") or ""), dict(function.get("args") or {})
            calls.append(ToolCall(id=id_, name=name, arguments=arguments))
            if part.get("thoughtSignature"):
                signed[id_] = {"thoughtSignature": part["thoughtSignature"]}
    model = str(answer.get("modelVersion") or "")
    counts = answer.get("usageMetadata") or {}
    usage = usage_of(counts, "promptTokenCount", "candidatesTokenCount", "cachedContentTokenCount")
    return Reply(
        text="".join(str(p.get("text") or "") for p in parts if not p.get("thought")),
        tool_calls=tuple(calls),
        stop_reason="tools" if calls else _STOPS.get(str(candidate.get("finishReason")), "end"),
        usage=replace(usage, output_tokens=usage.output_tokens + int(counts.get("thoughtsTokenCount") or 0)),
        model=model,
        provider_data={"provider": "gemini", "model": model, "calls": signed} if signed else {},
    )


class _Assembler(Assembler):
    def __init__(self) -> None:
        super().__init__()
        self._parts: list[Any] = []
        self._finish: Any = None

    def add(self, event: Mapping[str, Any]) -> str:
        candidate: Mapping[str, Any] = next(iter(event.get("candidates") or ()), {})
        parts = (candidate.get("content") or {}).get("parts") or ()
        self._parts += parts
        self._finish = candidate.get("finishReason") or self._finish
        self.done = self._finish is not None
        whole = {"content": {"parts": self._parts}, "finishReason": self._finish}
        self.answer |= {**event, "candidates": [whole]}
        return "".join(str(part.get("text") or "") for part in parts if not part.get("thought"))


def _violations(payload: Mapping[str, Any]) -> list[str]:
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
    tools = payload.get("tools")
    names = [tool.get("name") for group in tools or () for tool in group.get("functionDeclarations") or ()]
    check.tools(tools, names)
    _check_turns(contents, check)
    return check.violations_of(payload)


def _check_turns(contents: Sequence[Mapping[str, Any]], check: Check) -> None:
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
        first = next((part for part in parts if "functionCall" in part), {"thoughtSignature": ""})
        check("thoughtSignature" in first, "G6: the first call of a turn is not signed")
        waiting = [call.get("name") for call in calls]
    check(not waiting, "G5: a call without a result")


_GEMINI = Model(
    start="",
    window=1_000_000,
    max_output=65_536,
    cache_seconds=3600,
    cache_read=0.1,
    cache_min=4096,
    ratio=1.2,
    # Guesses: its vocabulary is larger than ours.
    ratios={
        "latin": 1.3,
        "cyrillic": 1.6,
        "arabic": 1.6,
        "devanagari": 1.7,
        "cjk": 1.5,
        "emoji": 2.0,
        "other": 2.2,
    },
    bytes_per_token=0.0,
)

GEMINI = Vendor(
    name="gemini",
    address="https://generativelanguage.googleapis.com",
    address_variable="GEMINI_BASE_URL",
    key_variable="GEMINI_API_KEY",
    path="/v1beta/models/{model}:streamGenerateContent?alt=sse",
    models_path="/v1beta/models",
    tells_windows=True,
    headers={"x-goog-api-key": "{key}"},
    default_model="gemini-3-flash",
    models=(
        replace(_GEMINI, start="gemini-3"),
        replace(_GEMINI, start="gemini-2.5", cache_min=2048),
    ),
    rule=Rule(id_letters="a-zA-Z0-9", user_first=True),
    to_wire=_to_wire,
    from_wire=_from_wire,
    violations=_violations,
    assembler=_Assembler,
)
