"""How much a request may hold, and where the work with a large one is done."""

import json
import threading
from dataclasses import replace
from typing import Any

import pytest

import weft
from http_server import serving
from weft.channels import http_json, openai_api
from weft.channels.http_bodies import ChatBody, ResponsesBody
from weft.channels.http_settings import HttpChannelSettings
from weft.gateway.transcript import COMPARED, match

FUNCTION = {"name": "look", "parameters": {}}


def chat(messages: int = 1, tools: int = 0) -> dict[str, Any]:
    return {
        "messages": [{"role": "user", "content": "Hi"}] * messages,
        "tools": [{"type": "function", "function": FUNCTION}] * tools,
    }


def items(count: int = 1, tools: int = 0) -> dict[str, Any]:
    return {
        "input": [{"role": "user", "content": "Hi"}] * count,
        "tools": [{"type": "function", **FUNCTION}] * tools,
    }


async def refusal(path: str, body: Any, **settings: Any) -> dict[str, Any]:
    async with serving(["Hi"], **settings) as server, server.client() as http:
        response = await http.post(path, json=body)
        assert response.status_code == 400
        assert not server.model.requests
        error: dict[str, Any] = response.json()["error"]
        return error


@pytest.mark.parametrize(
    ("path", "body", "sentence"),
    [
        (
            "/v1/chat/completions",
            chat(10_001),
            "messages: There are 10001 messages and 10000 are allowed: "
            "send fewer, or raise `http.max_messages`.",
        ),
        (
            "/v1/responses",
            items(10_001),
            "input: There are 10001 messages and 10000 are allowed: "
            "send fewer, or raise `http.max_messages`.",
        ),
        (
            "/v1/chat/completions",
            chat(1, 513),
            "tools: There are 513 tools and 512 are allowed: send fewer, or raise `http.max_tools`.",
        ),
        (
            "/v1/responses",
            items(1, 513),
            "tools: There are 513 tools and 512 are allowed: send fewer, or raise `http.max_tools`.",
        ),
        (
            "/v1/chat/completions",
            {"messages": [{"role": "user", "content": [{"text": "a"}] * 10_001}]},
            "messages: There are 10001 parts and 10000 are allowed: "
            "send fewer, or raise `http.max_messages`.",
        ),
        (
            "/v1/chat/completions",
            {**chat(), "metadata": {str(n): "" for n in range(17)}},
            "metadata: There are 17 metadata and 16 are allowed: send fewer.",
        ),
    ],
)
async def test_a_request_with_too_many_of_anything_is_refused_by_its_count(
    path: str, body: Any, sentence: str
) -> None:
    error = await refusal(path, body)
    assert (error["message"], error["code"]) == (sentence, "too_many")


async def test_the_limits_are_settings_and_what_they_allow_is_answered() -> None:
    assert (await refusal("/v1/responses", items(4), max_messages=3))["param"] == "input"
    assert (await refusal("/v1/responses", items(1, 3), max_tools=2))["param"] == "tools"
    async with serving(["Hi"], max_messages=3, max_tools=2) as server, server.client() as http:
        assert (await http.post("/v1/responses", json=items(3, 2))).status_code == 200


async def test_what_is_counted_is_neither_checked_nor_converted_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    work: list[str] = []
    for model in (ChatBody, ResponsesBody):
        monkeypatch.setattr(model, "model_validate", lambda data: work.append("checked"))
    for name in ("_message", "_messages_of", "_tools"):
        monkeypatch.setattr(openai_api, name, lambda *_: work.append("converted"))

    await refusal("/v1/chat/completions", chat(10_001))
    await refusal("/v1/responses", items(1, 513))

    assert work == []


async def test_a_large_body_is_read_checked_and_converted_in_a_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    threads: dict[str, set[int]] = {"read": set(), "convert": set()}
    read, convert = http_json.read_body, weft.Message

    def noted(kind: str, work: Any) -> Any:
        def run(*args: Any, **values: Any) -> Any:
            threads[kind].add(threading.get_ident())
            return work(*args, **values)

        return run

    monkeypatch.setattr(http_json, "read_body", noted("read", read))
    monkeypatch.setattr(openai_api, "Message", noted("convert", convert))
    async with serving(["Hi", "Hi"]) as server, server.client(timeout=60) as http:
        for path, body in (("/v1/chat/completions", chat(2000)), ("/v1/responses", items(2000))):
            assert (await http.post(path, json=body)).status_code == 200

    assert all(threads.values())
    assert threading.get_ident() not in threads["read"] | threads["convert"]


def test_other_threads_run_while_a_large_body_is_parsed() -> None:
    """One call of C holds all threads; so the parser steps into Python for each object and each number."""
    steps: list[str] = []
    body = json.dumps({**chat(100), "n": 1, "junk": [1, 2.5, {}]}).encode()

    def profile(frame: Any, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code.co_filename == http_json.__file__:
            steps.append(frame.f_code.co_name)

    threading.setprofile(profile)
    try:
        thread = threading.Thread(target=http_json.read_body, args=(body, ChatBody, HttpChannelSettings()))
        thread.start()
        thread.join()
    finally:
        threading.setprofile(None)

    assert steps.count("_object") == 102
    assert steps.count("_integer") == 2
    assert steps.count("_decimal") == 1


async def test_only_the_first_of_many_mistakes_is_looked_for() -> None:
    error = await refusal("/v1/chat/completions", {"messages": [{"role": "nobody"}] * 10_000})
    assert error["param"] == "messages.0.role"


def test_an_answer_with_many_calls_is_put_together_once(monkeypatch: pytest.MonkeyPatch) -> None:
    copies: list[Any] = []

    def noted(value: Any, **changes: Any) -> Any:
        copies.append(changes)
        return replace(value, **changes)

    monkeypatch.setattr(openai_api, "replace", noted)
    calls = [{"type": "function_call", "call_id": str(n), "name": "look"} for n in range(1000)]

    messages = list(openai_api._messages_of([{"role": "user", "content": "Hi"}, *calls]))

    assert (len(messages), len(copies)) == (2, 1)


def test_the_calls_of_an_answer_stand_behind_its_text_in_their_order() -> None:
    calls = [{"type": "function_call", "call_id": str(n), "name": "look"} for n in range(3)]
    text = {"role": "assistant", "content": "I look."}

    first, second = openai_api._messages_of([text, *calls, {"role": "user", "content": "And?"}])

    assert [call.id for call in first.tool_calls] == ["0", "1", "2"]
    assert (first.content, second.content) == ("I look.", "And?")


class _Counted(str):
    """A text that counts how often it is compared."""

    __slots__ = ()
    strips = 0

    def strip(self, chars: str | None = None) -> str:
        type(self).strips += 1
        return super().strip(chars)


def test_a_transcript_is_compared_with_the_log_in_one_pass() -> None:
    _Counted.strips = 0
    log = [weft.Message(role="user", content=_Counted(f"stored {n}")) for n in range(COMPARED)]
    history = [weft.Message(role="user", content=_Counted(f"sent {n}")) for n in range(10_000)]

    assert match(log, history, [weft.Message(role="user", content="new")]).count == 0

    assert _Counted.strips <= len(log) + len(history)


def test_calls_of_a_transcript_are_known_by_their_ids_even_where_a_model_repeats_them() -> None:
    def calling(*ids: str) -> weft.Message:
        calls = tuple(weft.ToolCall(id=id_, name="look") for id_ in ids)
        return weft.Message(role="assistant", content="", tool_calls=calls)

    question = weft.Message(role="user", content="Look")
    result = weft.Message(role="tool", content="seen", tool_call_id="call_1")
    log = [question, calling("call_0"), question, calling("call_0", "own", "call_1"), result]

    known = match(log, [question], [question, calling("call_1", "call_0"), result])

    assert known.count == 3
    assert known.steps == tuple(log[3:])
