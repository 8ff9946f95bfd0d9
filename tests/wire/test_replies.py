"""Answers as providers write them, and conversations that go on with another provider."""

from typing import Any

import pytest

import weft
from weft.wire import PROVIDERS, VENDORS, from_wire, to_wire, violations
from weft.wire.clean import compact

LOOK = weft.ToolDefinition(name="look", parameters={"type": "object", "properties": {"at": {}}})

DEFAULT = {name: vendor.default_model for name, vendor in VENDORS.items()}
SIGNED = "SIGNED-openai_responses."
ANSWERS: dict[str, dict[str, Any]] = {
    "anthropic": {
        "id": "msg_01",
        "type": "message",
        "role": "assistant",
        "model": DEFAULT["anthropic"],
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "SIGNED-anthropic."},
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "toolu_01A", "name": "look", "input": {"at": "sea"}},
            {"type": "tool_use", "id": "toolu_01B", "name": "look", "input": {"at": "sky"}},
        ],
        "stop_reason": "tool_use",
        "usage": {
            "input_tokens": 10,
            "cache_creation_input_tokens": 20,
            "cache_read_input_tokens": 70,
            "output_tokens": 9,
        },
    },
    "openai": {
        "id": "chatcmpl-1",
        "model": DEFAULT["openai"],
        "choices": [
            {
                "index": 0,
                "finish_reason": "tool_calls",
                "message": {
                    "role": "assistant",
                    "content": "I look.",
                    "tool_calls": [
                        {
                            "id": "call_A",
                            "type": "function",
                            "function": {"name": "look", "arguments": '{"at": "sea"}'},
                        },
                        {
                            "id": "call_B",
                            "type": "function",
                            "function": {"name": "look", "arguments": '{"at": "sky"}'},
                        },
                    ],
                },
            }
        ],
        "usage": {
            "prompt_tokens": 100,
            "completion_tokens": 9,
            "prompt_tokens_details": {"cached_tokens": 70, "cache_write_tokens": 20},
        },
    },
    "openai_responses": {
        "id": "resp_1",
        "object": "response",
        "model": DEFAULT["openai_responses"],
        "status": "completed",
        "output": [
            {
                "type": "reasoning",
                "id": "rs_1",
                "summary": [],
                "encrypted_content": SIGNED,
            },
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "I look.", "annotations": []}],
            },
            {"type": "function_call", "call_id": "call_A", "name": "look", "arguments": '{"at": "sea"}'},
            {"type": "function_call", "call_id": "call_B", "name": "look", "arguments": '{"at": "sky"}'},
        ],
        "usage": {
            "input_tokens": 100,
            "output_tokens": 9,
            "input_tokens_details": {"cached_tokens": 70, "cache_write_tokens": 20},
        },
    },
    "ollama": {
        "model": DEFAULT["ollama"],
        "message": {
            "role": "assistant",
            "content": "I look.",
            "tool_calls": [
                {"function": {"name": "look", "arguments": {"at": "sea"}}},
                {"function": {"name": "look", "arguments": {"at": "sky"}}},
            ],
        },
        "done": True,
        "done_reason": "stop",
        "prompt_eval_count": 100,
        "prompt_eval_cached_count": 70,
        "eval_count": 9,
    },
    "gemini": {
        "modelVersion": DEFAULT["gemini"],
        "candidates": [
            {
                "finishReason": "STOP",
                "content": {
                    "role": "model",
                    "parts": [
                        {"text": "secret thought", "thought": True},
                        {"text": "I look."},
                        {
                            "functionCall": {"name": "look", "args": {"at": "sea"}},
                            "thoughtSignature": "SIGNED-gemini.",
                        },
                        {"functionCall": {"name": "look", "args": {"at": "sky"}}},
                    ],
                },
            }
        ],
        "usageMetadata": {
            "promptTokenCount": 100,
            "candidatesTokenCount": 7,
            "thoughtsTokenCount": 2,
            "cachedContentTokenCount": 70,
        },
    },
}
ANSWERS["openrouter"] = {**ANSWERS["openai"], "model": DEFAULT["openrouter"]}


@pytest.mark.parametrize("provider", PROVIDERS)
def test_text_calls_and_usage_are_read(provider: str) -> None:
    reply = from_wire(provider, ANSWERS[provider])

    assert reply.text == "I look."
    assert [(call.name, call.arguments) for call in reply.tool_calls] == [
        ("look", {"at": "sea"}),
        ("look", {"at": "sky"}),
    ]
    assert len({call.id for call in reply.tool_calls}) == 2
    assert reply.stop_reason == "tools"
    written = 0 if provider in ("ollama", "gemini") else 20  # these two do not say
    assert reply.usage == weft.Usage(
        input_tokens=100, output_tokens=9, cached_tokens=70, written_tokens=written
    )
    assert reply.model == DEFAULT[provider]


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("answer", [{}, {"choices": []}, {"content": None}, {"candidates": [{}]}])
def test_an_answer_with_nothing_in_it_is_an_empty_reply(provider: str, answer: dict[str, Any]) -> None:
    reply = from_wire(provider, answer)

    assert (reply.text, reply.tool_calls) == ("", ())


@pytest.mark.parametrize("arguments", ["{", "[1]", "3", None, ""])
def test_arguments_that_are_no_object_are_kept_as_they_came(arguments: Any) -> None:
    function = {"name": "look", "arguments": arguments}
    message = {"content": None, "tool_calls": [{"id": "a", "function": function}]}

    (call,) = from_wire("openai", {"choices": [{"message": message}]}).tool_calls

    assert call.arguments == ({"_raw": arguments} if arguments else {})


def turns(provider: str, at: int) -> list[weft.Message]:
    """A turn with tools, as this provider answered it."""
    reply = from_wire(provider, ANSWERS[provider])
    results = [
        weft.Message(role="tool", content=f"seen {n}", tool_call_id=call.id, tool_name=call.name)
        for n, call in enumerate(reply.tool_calls)
    ]
    return [
        weft.Message(role="user", content=f"Question {at} to {provider}"),
        weft.Message(
            role="assistant",
            content=reply.text,
            tool_calls=reply.tool_calls,
            provider_data=reply.provider_data,
            origin="agent",
        ),
        *results,
        weft.Message(role="assistant", content=f"Answer {at} of {provider}", origin="agent"),
    ]


@pytest.mark.parametrize("first", PROVIDERS)
@pytest.mark.parametrize("second", PROVIDERS)
def test_a_long_session_goes_on_with_any_other_provider(first: str, second: str) -> None:
    history = [message for at in range(20) for message in turns(first if at % 2 else second, at)]
    context = weft.Context(
        system_prompt="S", history=tuple(history), tools=(LOOK,), current_message="And now?"
    )

    payload = to_wire(second, context)

    assert violations(second, payload) == []
    text = compact(payload)
    assert all(f"Answer {at} of" in text for at in range(20))
    for other in PROVIDERS:
        if f"SIGNED-{other}." in text:
            assert other == second, "what one model signed was sent to another"
    if second in ("anthropic", "gemini", "openai_responses"):
        assert f"SIGNED-{second}." in text


@pytest.mark.parametrize("provider", PROVIDERS)
def test_another_model_of_the_same_vendor_does_not_get_what_was_signed(provider: str) -> None:
    context = weft.Context(history=tuple(turns(provider, 0)), tools=(LOOK,), current_message="And now?")

    payload = to_wire(provider, context, model="another-model")

    assert "SIGNED-" not in compact(payload)
    assert violations(provider, payload) == []


LATE: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "openai": (
        {"choices": [{"delta": {"content": "At"}, "finish_reason": "length"}]},
        {"choices": [{"delta": {}, "finish_reason": None}]},
    ),
    "gemini": (
        {"candidates": [{"content": {"parts": [{"text": "At"}]}, "finishReason": "MAX_TOKENS"}]},
        {"candidates": [{}], "usageMetadata": {"promptTokenCount": 3}},
    ),
}


@pytest.mark.parametrize("provider", LATE)
def test_what_comes_after_the_end_of_a_stream_does_not_take_it_back(provider: str) -> None:
    assembler = VENDORS[provider].assembler()
    for event in LATE[provider]:
        assembler.feed(event)

    reply = from_wire(provider, assembler.answer)

    assert (assembler.done, reply.text, reply.stop_reason) == (True, "At", "max_tokens")
