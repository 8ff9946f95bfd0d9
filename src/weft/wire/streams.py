"""Answers that come in pieces: each dialect's events are put together to the answer that `from_wire` reads.

Pure: events go in one by one, text comes out as it grows, and at the end the whole answer. A stream that
stops before its end has none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from weft.wire.openai import arguments_from


class Assembler(Protocol):
    """Takes events; `done` once the answer is whole; `error` if the provider reported one on the way."""

    done: bool
    error: str

    def feed(self, event: Mapping[str, Any]) -> str: ...

    def answer(self) -> dict[str, Any]: ...


class _Base:
    def __init__(self) -> None:
        self.done = False
        self.error = ""

    def failed(self, told: Any) -> str:
        inner = told.get("error") if isinstance(told, Mapping) and told.get("error") else told
        message = inner.get("message") if isinstance(inner, Mapping) else inner
        self.error = str(message or "the provider reported an error")
        return ""


class Anthropic(_Base):
    def __init__(self) -> None:
        super().__init__()
        self._message: dict[str, Any] = {}
        self._blocks: dict[int, dict[str, Any]] = {}
        self._inputs: dict[int, str] = {}

    def feed(self, event: Mapping[str, Any]) -> str:
        kind, index = event.get("type"), int(event.get("index") or 0)
        if kind == "error":
            return self.failed(event)
        if kind == "message_start":
            self._message = dict(event.get("message") or {})
        elif kind == "content_block_start":
            self._blocks[index] = dict(event.get("content_block") or {})
        elif kind == "content_block_delta":
            return self._delta(index, event.get("delta") or {})
        elif kind == "message_delta":
            self._message |= event.get("delta") or {}
            self._message["usage"] = {**(self._message.get("usage") or {}), **(event.get("usage") or {})}
        elif kind == "message_stop":
            self.done = True
        return ""

    def _delta(self, index: int, delta: Mapping[str, Any]) -> str:
        block = self._blocks.setdefault(index, {"type": "text", "text": ""})
        for name in ("text", "thinking", "signature"):
            if name in delta:
                block[name] = str(block.get(name) or "") + str(delta[name])
        if "partial_json" in delta:
            self._inputs[index] = self._inputs.get(index, "") + str(delta["partial_json"])
        return str(delta.get("text") or "")

    def answer(self) -> dict[str, Any]:
        for index, text in self._inputs.items():
            self._blocks[index]["input"] = arguments_from(text.strip())
        return self._message | {"content": [self._blocks[index] for index in sorted(self._blocks)]}


class OpenAI(_Base):
    def __init__(self) -> None:
        super().__init__()
        self._answer: dict[str, Any] = {}
        self._text: list[str] = []
        self._calls: dict[int, dict[str, Any]] = {}
        self._finish: Any = None

    def feed(self, event: Mapping[str, Any]) -> str:
        if event.get("error"):
            return self.failed(event)
        self._answer |= {key: event[key] for key in ("id", "model", "usage") if event.get(key)}
        choice: Mapping[str, Any] = next(iter(event.get("choices") or ()), {})
        delta = choice.get("delta") or {}
        for call in delta.get("tool_calls") or ():
            self._call(call)
        if choice.get("finish_reason"):
            self._finish, self.done = choice["finish_reason"], True
        text = str(delta.get("content") or "")
        self._text.append(text)
        return text

    def _call(self, call: Mapping[str, Any]) -> None:
        at = int(call.get("index") or 0)
        held = self._calls.setdefault(at, {"id": "", "function": {"name": "", "arguments": ""}})
        held["id"] = call.get("id") or held["id"]
        function = call.get("function") or {}
        held["function"]["name"] += str(function.get("name") or "")
        held["function"]["arguments"] += str(function.get("arguments") or "")

    def answer(self) -> dict[str, Any]:
        calls = [self._calls[at] for at in sorted(self._calls)]
        message = {"content": "".join(self._text), "tool_calls": calls}
        return self._answer | {"choices": [{"message": message, "finish_reason": self._finish}]}


class Responses(_Base):
    def __init__(self) -> None:
        super().__init__()
        self._response: dict[str, Any] = {}

    def feed(self, event: Mapping[str, Any]) -> str:
        kind = str(event.get("type"))
        if kind == "error":
            return self.failed(event)
        if kind == "response.failed":
            return self.failed(event.get("response") or {})
        if kind in ("response.completed", "response.incomplete"):
            self._response, self.done = dict(event.get("response") or {}), True
        return str(event.get("delta") or "") if kind == "response.output_text.delta" else ""

    def answer(self) -> dict[str, Any]:
        return self._response


class Ollama(_Base):
    def __init__(self) -> None:
        super().__init__()
        self._last: dict[str, Any] = {}
        self._text: list[str] = []
        self._calls: list[Any] = []

    def feed(self, event: Mapping[str, Any]) -> str:
        if event.get("error"):
            return self.failed(event)
        message = event.get("message") or {}
        self._last |= event
        self._calls += message.get("tool_calls") or ()
        self.done = bool(event.get("done"))
        text = str(message.get("content") or "")
        self._text.append(text)
        return text

    def answer(self) -> dict[str, Any]:
        return self._last | {"message": {"content": "".join(self._text), "tool_calls": self._calls}}


class Gemini(_Base):
    def __init__(self) -> None:
        super().__init__()
        self._last: dict[str, Any] = {}
        self._parts: list[Any] = []
        self._finish: Any = None

    def feed(self, event: Mapping[str, Any]) -> str:
        if event.get("error"):
            return self.failed(event)
        self._last |= event
        candidate: Mapping[str, Any] = next(iter(event.get("candidates") or ()), {})
        parts = (candidate.get("content") or {}).get("parts") or ()
        self._parts += parts
        if candidate.get("finishReason"):
            self._finish, self.done = candidate["finishReason"], True
        return "".join(str(part.get("text") or "") for part in parts if not part.get("thought"))

    def answer(self) -> dict[str, Any]:
        candidate = {"content": {"parts": self._parts}, "finishReason": self._finish}
        return self._last | {"candidates": [candidate]}


ASSEMBLERS: Mapping[str, Callable[[], Assembler]] = {
    "anthropic": Anthropic,
    "openai": OpenAI,
    "openai_responses": Responses,
    "openrouter": OpenAI,
    "ollama": Ollama,
    "gemini": Gemini,
}
