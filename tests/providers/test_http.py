"""Vendors over HTTP, against a server on loopback that speaks their protocol, well and badly."""

import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

import weft
from weft.providers.access import HttpSettings, address_of
from weft.providers.http import HttpProvider
from weft.testing import LoopbackVendor, Refusal
from weft.types.reply import Done, RequestSent, TextDelta
from weft.wire import VENDORS, violations

KEY = "sk-" + "never-seen-anywhere-1234"
CONTEXT = weft.Context(system_prompt="Be calm.", current_message="Where?")
CALL = {"name": "look", "arguments": '{"at": "sea"}'}


def sse(*events: Any) -> bytes:
    return b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)


STREAMS: dict[str, bytes] = {
    "anthropic": b": hello\n\nevent: message_start\n"
    + sse(
        {"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 5}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "ping"},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "At "}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "sea."}},
        {
            "type": "content_block_start",
            "index": 1,
            "content_block": {"type": "tool_use", "id": "t", "name": "look", "input": {}},
        },
        {"type": "content_block_delta", "index": 1, "delta": {"partial_json": '{"at": '}},
        {"type": "content_block_delta", "index": 1, "delta": {"partial_json": '"sea"}'}},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 7}},
        {"type": "message_stop"},
    ),
    "openai": sse(
        {"model": "m", "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]},
        {"choices": [{"index": 0, "delta": {"content": "At "}}]},
        {"choices": [{"index": 0, "delta": {"content": "sea."}}]},
        {"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "t", "function": {"name": "look"}}]}}]},
        {"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": '{"at": '}}]}}]},
        {"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": '"sea"}'}}]}}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
        {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 7}},
    )
    + b"data: [DONE]\n\n",
    "openai_responses": sse(
        {"type": "response.created", "response": {}},
        {"type": "response.output_text.delta", "delta": "At "},
        {"type": "response.output_text.delta", "delta": "sea."},
        {
            "type": "response.completed",
            "response": {
                "model": "m",
                "output": [
                    {"type": "message", "content": [{"type": "output_text", "text": "At sea."}]},
                    {"type": "function_call", "call_id": "t", **CALL},
                ],
                "usage": {"input_tokens": 5, "output_tokens": 7},
            },
        },
    ),
    "ollama": b"\n".join(
        json.dumps(line).encode()
        for line in (
            {"model": "m", "message": {"content": "At "}},
            {"model": "m", "message": {"content": "sea."}},
            {"message": {"tool_calls": [{"id": "t", "function": {**CALL, "arguments": {"at": "sea"}}}]}},
            {"done": True, "done_reason": "stop", "prompt_eval_count": 5, "eval_count": 7},
        )
    ),
    "gemini": sse(
        {"candidates": [{"content": {"parts": [{"text": "At "}]}}], "modelVersion": "m"},
        {"candidates": [{"content": {"parts": [{"text": "sea."}]}}]},
        {
            "candidates": [
                {
                    "content": {
                        "parts": [{"functionCall": {"id": "t", "name": "look", "args": {"at": "sea"}}}]
                    },
                    "finishReason": "STOP",
                }
            ],
            "usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 7},
        },
    ),
}
STREAMS["openrouter"] = STREAMS["openai"]


@asynccontextmanager
async def provider(name: str, url: str, **settings: Any) -> AsyncIterator[HttpProvider]:
    info = weft.ModelInfo(id="some-model", provider=name)
    made = HttpProvider(VENDORS[name], info=info, url=url, key=KEY, settings=HttpSettings(**settings))
    yield made
    await made.close()


@pytest.mark.parametrize("name", VENDORS)
async def test_an_answer_comes_word_by_word_with_calls_and_usage(name: str) -> None:
    with LoopbackVendor(name, [STREAMS[name]]) as server:
        async with provider(name, server.url) as asked:
            events = [event async for event in asked.stream(CONTEXT)]

    assert [event.text for event in events if isinstance(event, TextDelta)] == ["At ", "sea."]
    assert isinstance(events[-1], Done)
    reply = events[-1].reply
    assert reply.text == "At sea."
    assert reply.tool_calls == (weft.ToolCall(id="t", name="look", arguments={"at": "sea"}),)
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (5, 7) if reply.usage else False
    (request,) = server.requests
    assert "some-model" in request.path or request.payload["model"] == "some-model"
    assert violations(name, request.payload) == []
    assert (KEY in json.dumps(dict(request.headers))) == bool(VENDORS[name].key_variable)
    assert KEY not in request.path + json.dumps(request.payload)


@pytest.mark.parametrize("name", VENDORS)
@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\x85"])
async def test_marks_that_end_a_line_elsewhere_are_text_inside_of_json(name: str, mark: str) -> None:
    whole = STREAMS[name].replace(b"sea.", f"s{mark}ea.".encode())
    with LoopbackVendor(name, [whole]) as server:
        async with provider(name, server.url, retries=0) as asked:
            reply = await asked.complete(CONTEXT)

    assert reply.text == f"At s{mark}ea."


@pytest.mark.parametrize("end", [b"\r\n", b"\n"])
@pytest.mark.parametrize("name", VENDORS)
async def test_lines_may_end_in_either_way_and_the_last_one_in_none(name: str, end: bytes) -> None:
    whole = STREAMS[name].replace(b"\n", end).rstrip()
    with LoopbackVendor(name, [whole]) as server:
        async with provider(name, server.url, retries=0) as asked:
            reply = await asked.complete(CONTEXT)

    assert reply.text == "At sea."


@pytest.mark.parametrize("name", VENDORS)
@pytest.mark.parametrize(
    ("status", "says"),
    [(400, "refused the request (400): no good"), (401, "did not accept the key"), (404, "does not know")],
)
async def test_what_a_vendor_refuses_is_one_sentence_and_is_not_sent_again(
    name: str, status: int, says: str
) -> None:
    with LoopbackVendor(name, [Refusal(status, f"no good, {KEY}")]) as server:
        async with provider(name, server.url) as asked:
            with pytest.raises(weft.ProviderError) as caught:
                await asked.complete(CONTEXT)

    assert says in str(caught.value)
    assert KEY not in str(caught.value)
    assert len(server.requests) == 1


@pytest.mark.parametrize("name", VENDORS)
@pytest.mark.parametrize("status", [429, 500, 503, 529])
async def test_what_passes_is_tried_again_after_the_time_that_was_asked_for(
    name: str, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    busy = Refusal(status, f"too many, {KEY}", retry_after_seconds=0)
    with LoopbackVendor(name, [busy, busy, STREAMS[name]]) as server, caplog.at_level(logging.WARNING):
        async with provider(name, server.url) as asked:
            reply = await asked.complete(CONTEXT)

    assert reply.text == "At sea."
    assert len(server.requests) == 3
    line = f"Trying again in 0.0 seconds: {name} is busy or failed ({status}): too many, ***."
    assert [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING] == [
        line
    ] * 2


@pytest.mark.parametrize("name", VENDORS)
async def test_there_is_an_end_to_trying(name: str) -> None:
    busy = Refusal(503, b"busy", retry_after_seconds=0)
    with LoopbackVendor(name, [busy] * 3) as server:
        async with provider(name, server.url, retries=2) as asked:
            with pytest.raises(weft.ProviderError, match=r"busy or failed \(503\): busy\."):
                await asked.complete(CONTEXT)

    assert len(server.requests) == 3


@pytest.mark.parametrize("name", VENDORS)
async def test_an_answer_that_breaks_off_is_never_begun_twice(name: str) -> None:
    whole = STREAMS[name]
    half = whole[: whole.index(b"sea.")].rpartition(b"\n")[0] + b"\n\n"
    with LoopbackVendor(name, [half]) as server:
        async with provider(name, server.url) as asked:
            events = asked.stream(CONTEXT)
            assert isinstance(await anext(events), RequestSent)
            assert await anext(events) == TextDelta("At ")
            with pytest.raises(weft.ProviderError, match="broke off before its end"):
                await anext(events)

    assert len(server.requests) == 1


@pytest.mark.parametrize("name", VENDORS)
@pytest.mark.parametrize("garbage", [b"data: {\n\n{\n", b"data: [1]\n\n[1]\n", b""])
async def test_a_stream_of_something_else_is_an_error(name: str, garbage: bytes) -> None:
    with LoopbackVendor(name, [garbage]) as server:
        async with provider(name, server.url, retries=0) as asked:
            with pytest.raises(weft.ProviderError, match="ask again"):
                await asked.complete(CONTEXT)


@pytest.mark.parametrize("name", VENDORS)
async def test_an_error_inside_the_stream_is_told(name: str) -> None:
    error = {"type": "error", "error": {"message": "overloaded"}}
    body = json.dumps(error).encode() if name == "ollama" else sse(error)
    with LoopbackVendor(name, [body]) as server:
        async with provider(name, server.url, retries=0) as asked:
            with pytest.raises(weft.ProviderError, match="broke off: overloaded"):
                await asked.complete(CONTEXT)


async def test_nobody_there_is_one_sentence() -> None:
    with LoopbackVendor("ollama") as server:
        pass
    async with provider("ollama", server.url, retries=0) as asked:
        with pytest.raises(weft.ProviderError, match="cannot be reached at http"):
            await asked.complete(CONTEXT)


async def test_silence_ends() -> None:
    with LoopbackVendor("openai", [None]) as server:
        async with provider("openai", server.url, silence_seconds=0.05, retries=0) as asked:
            with pytest.raises(weft.ProviderError, match="did not answer in time"):
                await asked.complete(CONTEXT)


def test_addresses_come_from_the_environment() -> None:
    assert address_of(VENDORS["ollama"], {"OLLAMA_HOST": "1.2.3.4:99/"}) == "http://1.2.3.4:99"
    assert address_of(VENDORS["openai"], {"OPENAI_BASE_URL": "https://x.test/v1/"}) == "https://x.test/v1"
    assert address_of(VENDORS["gemini"], {}) == "https://generativelanguage.googleapis.com"
