"""A vendor on loopback that answers from a script, for tests of whole programs without a network."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, Self

from weft.channels.openai_api import chat_answer, chat_chunk, chat_cost, chat_end, response
from weft.errors import ConfigError
from weft.types.receipt import Usage
from weft.types.reply import Reply
from weft.wire.vendor import Vendor
from weft.wire.vendors import find_vendor

Json = dict[str, Any]
_WORDS = re.compile(r"\S+\s*|\s+")
_ID = "loopback"


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer with an error status. A text is written as the vendor writes errors; bytes are sent as is."""

    status: int
    message: str | bytes
    retry_after_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class SentRequest:
    """A request that came: its path with the query, its headers in lower case, its JSON."""

    path: str
    headers: Mapping[str, str]
    payload: Mapping[str, Any]


class LoopbackVendor:
    """A server that speaks a vendor's protocol, streaming and not. Use it in a `with` statement.

    Each request takes the next item of the script: a text or a `Reply` is written as the vendor writes it, a
    `Refusal` is an error, bytes are sent as they are, and None is silence until the client hangs up. What the
    vendor would refuse is refused here too, and the error lists the violations. `requests` lists what came.
    `pages` are answers to other questions, such as the list of models, by their paths; some may be refusals.

    Raises:
        ConfigError: no vendor has this name, or one outside of Weft has a script with more than bytes.
    """

    def __init__(
        self,
        provider: str | Vendor,
        script: str | Iterable[str | Reply | Refusal | bytes | None] = (),
        *,
        pages: Mapping[str, Any] | None = None,
    ) -> None:
        self.vendor = find_vendor(provider)
        self.requests: list[SentRequest] = []
        self.pages = dict(pages or {})
        items = (script,) if isinstance(script, str) else tuple(script)
        if self.vendor.name not in _FORMATS and any(isinstance(item, str | Reply) for item in items):
            raise ConfigError(f"How {self.vendor.name} writes a reply is not known here: script its bytes.")
        self._script = iter(items)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def environ(self) -> dict[str, str]:
        """Return the variables that lead a program to this server, with a key if the vendor needs one."""
        variables = {self.vendor.address_variable: self.url, self.vendor.key_variable: "loopback-key"}
        return {name: value for name, value in variables.items() if name}

    def __enter__(self) -> Self:
        Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        vendor = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                page = vendor.pages.get(self.path, Refusal(404, "not found"))
                status, body = (
                    (page.status, {"error": page.message}) if isinstance(page, Refusal) else (200, page)
                )
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.end_headers()
                self.wfile.write(json.dumps(body).encode())

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.path in (vendor.vendor.show_path, *vendor.pages):
                    self.do_GET()
                    return
                headers = {name.lower(): value for name, value in self.headers.items()}
                request = SentRequest(self.path, headers, json.loads(body))
                item = vendor._next(request)
                with suppress(ConnectionError):  # the client may hang up before the end
                    if item is None:
                        self.connection.recv(1)
                        return
                    refusal = item if isinstance(item, Refusal) else Refusal(200, b"")
                    self.send_response(refusal.status)
                    self.send_header("content-type", vendor._media_type(item, request))
                    if refusal.retry_after_seconds is not None:
                        self.send_header("retry-after", str(refusal.retry_after_seconds))
                    self.end_headers()
                    for chunk in vendor._chunks(item, request):
                        self.wfile.write(chunk)

            def log_message(self, *_: object) -> None:
                """Print nothing."""

        return Handler

    def _next(self, request: SentRequest) -> Reply | Refusal | bytes | None:
        self.requests.append(request)
        if violations := self.vendor.violations(request.payload):
            return Refusal(400, "; ".join(violations))
        number = len(self.requests)
        missing = Refusal(400, f"The script has no reply for request {number}: add one to the script.")
        item = next(self._script, missing)
        if isinstance(item, str):
            tokens = Usage(input_tokens=len(str(request.payload)) // 4, output_tokens=len(item) // 4)
            item = Reply(text=item, usage=tokens)
        return item

    def _streams(self, request: SentRequest) -> bool:
        return "stream" in request.path or bool(request.payload.get("stream", self.vendor.streams_lines))

    def _media_type(self, item: Reply | Refusal | bytes, request: SentRequest) -> str:
        if isinstance(item, Refusal) or not self._streams(request):
            return "application/json"
        return "application/x-ndjson" if self.vendor.streams_lines else "text/event-stream"

    def _chunks(self, item: Reply | Refusal | bytes, request: SentRequest) -> Iterator[bytes]:
        if isinstance(item, Refusal):
            item = item.message if isinstance(item.message, bytes) else self._error(item.message)
        if isinstance(item, bytes):
            yield item
            return
        item = replace(item, model=item.model or str(request.payload.get("model") or _ID))
        if not self._streams(request):
            yield json.dumps(_FORMATS[self.vendor.name].answer(item)).encode()
            return
        for event in _FORMATS[self.vendor.name].events(item):
            data = json.dumps(event).encode()
            yield data + b"\n" if self.vendor.streams_lines else b"data: " + data + b"\n\n"

    def _error(self, message: str) -> bytes:
        error = {"type": "error", "message": message}
        body = {"error": message} if self.vendor.streams_lines else {"type": "error", "error": error}
        return json.dumps(body).encode()


@dataclass(frozen=True, slots=True)
class _Format:
    """How a vendor writes a reply, as a whole and as events."""

    answer: Callable[[Reply], Json]
    events: Callable[[Reply], Iterator[Json]]


def _usage(reply: Reply) -> Usage:
    return reply.usage or Usage(input_tokens=0, output_tokens=0)


def _words(reply: Reply) -> list[str]:
    return _WORDS.findall(reply.text)


# --- Anthropic


def _anthropic(reply: Reply) -> Json:
    usage = _usage(reply)
    stops = {"end": "end_turn", "tools": "tool_use"}
    blocks: list[Json] = [dict(block) for block in reply.provider_data.get("thinking") or ()]
    if reply.text:
        blocks.append({"type": "text", "text": reply.text})
    blocks += [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": dict(call.arguments)}
        for call in reply.tool_calls
    ]
    return {
        "id": _ID,
        "type": "message",
        "role": "assistant",
        "model": reply.model,
        "content": blocks,
        "stop_reason": "tool_use" if reply.tool_calls else stops.get(reply.stop_reason, reply.stop_reason),
        "usage": {
            "input_tokens": usage.input_tokens - usage.cached_tokens - usage.written_tokens,
            "cache_read_input_tokens": usage.cached_tokens,
            "cache_creation_input_tokens": usage.written_tokens,
            "output_tokens": usage.output_tokens,
        },
    }


def _anthropic_events(reply: Reply) -> Iterator[Json]:
    answer = _anthropic(reply)
    blocks, stop = answer["content"], {"stop_reason": answer["stop_reason"]}
    yield {"type": "message_start", "message": {**answer, "content": [], "stop_reason": None}}
    for at, block in enumerate(blocks):
        kind, start = block["type"], dict(block)
        deltas: list[Json] = []
        if kind == "text":
            start["text"] = ""
            deltas = [{"type": "text_delta", "text": word} for word in _words(reply)]
        elif kind == "tool_use":
            start["input"] = {}
            deltas = [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
        yield {"type": "content_block_start", "index": at, "content_block": start}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": at, "delta": delta}
        yield {"type": "content_block_stop", "index": at}
    output = {"output_tokens": answer["usage"]["output_tokens"]}
    yield {"type": "message_delta", "delta": stop, "usage": output}
    yield {"type": "message_stop"}


# --- OpenAI: Chat Completions, and Responses


def _chat_events(reply: Reply) -> Iterator[Json]:
    yield chat_chunk(_ID, reply.model, {"role": "assistant", "content": ""})
    for word in _words(reply):
        yield chat_chunk(_ID, reply.model, {"content": word})
    yield from chat_end(_ID, reply.model, reply)
    yield chat_cost(_ID, reply.model, reply)


def _response(reply: Reply) -> Json:
    answer = response(_ID, reply.model, reply, item_id=_ID)
    return {**answer, "output": [*(reply.provider_data.get("reasoning") or ()), *answer["output"]]}


def _response_events(reply: Reply) -> Iterator[Json]:
    begun = response(_ID, reply.model, None, item_id=_ID, status="in_progress")
    yield {"type": "response.created", "response": begun}
    for word in _words(reply):
        yield {"type": "response.output_text.delta", "item_id": _ID, "delta": word}
    kind = "incomplete" if reply.stop_reason == "max_tokens" else "completed"
    yield {"type": f"response.{kind}", "response": _response(reply)}


# --- Ollama


def _ollama(reply: Reply) -> Json:
    message: Json = {"role": "assistant", "content": reply.text}
    if reply.tool_calls:
        message["tool_calls"] = [
            {"id": call.id, "function": {"name": call.name, "arguments": dict(call.arguments)}}
            for call in reply.tool_calls
        ]
    usage = _usage(reply)
    return {
        "model": reply.model,
        "message": message,
        "done": True,
        "done_reason": "length" if reply.stop_reason == "max_tokens" else "stop",
        "prompt_eval_count": usage.input_tokens,
        "prompt_eval_cached_count": usage.cached_tokens,
        "eval_count": usage.output_tokens,
    }


def _ollama_events(reply: Reply) -> Iterator[Json]:
    for word in _words(reply):
        yield {"model": reply.model, "message": {"role": "assistant", "content": word}, "done": False}
    yield _ollama(replace(reply, text=""))


# --- Gemini


def _gemini(reply: Reply) -> Json:
    usage, signed = _usage(reply), reply.provider_data.get("calls") or {}
    parts: list[Json] = [{"text": reply.text}] if reply.text else []
    for call in reply.tool_calls:
        function = {"id": call.id, "name": call.name, "args": dict(call.arguments)}
        parts.append({"functionCall": function, **signed.get(call.id, {})})
    finish = "MAX_TOKENS" if reply.stop_reason == "max_tokens" else "STOP"
    return {
        "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": finish}],
        "usageMetadata": {
            "promptTokenCount": usage.input_tokens,
            "candidatesTokenCount": usage.output_tokens,
            "cachedContentTokenCount": usage.cached_tokens,
        },
        "modelVersion": reply.model,
    }


def _gemini_events(reply: Reply) -> Iterator[Json]:
    for word in _words(reply):
        content = {"role": "model", "parts": [{"text": word}]}
        yield {"candidates": [{"content": content}], "modelVersion": reply.model}
    yield _gemini(replace(reply, text=""))


_CHAT = _Format(lambda reply: chat_answer(reply, _ID, reply.model), _chat_events)
_FORMATS: Mapping[str, _Format] = {
    "anthropic": _Format(_anthropic, _anthropic_events),
    "openai": _CHAT,
    "openai_responses": _Format(_response, _response_events),
    "openrouter": _CHAT,
    "ollama": _Format(_ollama, _ollama_events),
    "gemini": _Format(_gemini, _gemini_events),
}
