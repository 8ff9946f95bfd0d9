"""How the four systems' context reaches each provider."""

import pytest

import weft

HISTORY = (weft.Message(role="user", content="one"), weft.Message(role="assistant", content="two"))
CONTEXT = weft.Context(system_prompt="Be calm.", history=HISTORY, current_message="three")


def test_O31_ollama_gets_the_system_prompt_as_a_message() -> None:
    payload = weft.wire.to_wire("ollama", CONTEXT)

    assert payload["messages"] == [
        {"role": "system", "content": "Be calm."},
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "two"},
        {"role": "user", "content": "three"},
    ]
    assert payload["options"]["num_ctx"] > 0


@pytest.mark.parametrize("provider", ["openai", "openrouter"])
def test_O32_openai_and_openrouter_get_the_same_messages(provider: str) -> None:
    payload = weft.wire.to_wire(provider, CONTEXT, model="plain")

    assert payload["messages"] == weft.wire.to_wire("ollama", CONTEXT)["messages"]


def test_O33_anthropic_gets_the_system_prompt_as_a_field_of_its_own() -> None:
    payload = weft.wire.to_wire("anthropic", CONTEXT, model="plain")

    assert payload["system"] == "Be calm."
    assert [message["role"] for message in payload["messages"]] == ["user", "assistant", "user"]


def test_O34_gemini_gets_a_system_instruction_and_turns_of_the_model() -> None:
    payload = weft.wire.to_wire("gemini", CONTEXT)

    assert payload["systemInstruction"] == {"parts": [{"text": "Be calm."}]}
    assert payload["contents"] == [
        {"role": "user", "parts": [{"text": "one"}]},
        {"role": "model", "parts": [{"text": "two"}]},
        {"role": "user", "parts": [{"text": "three"}]},
    ]


def test_O9_a_context_that_names_a_model_gets_it() -> None:
    asked = weft.Context(current_message="hi", model="fast-one")

    for provider in weft.wire.PROVIDERS:
        assert weft.wire.to_wire(provider, asked)["model"] == "fast-one"
        assert weft.wire.to_wire(provider, weft.Context(current_message="hi"))["model"] != "fast-one"


async def test_C6_a_fresh_session_sends_one_system_and_one_user_message_and_the_tools() -> None:
    look = weft.ToolDefinition(name="look", description="Look.", parameters={"type": "object"})
    builder = weft.ContextBuilder(recipe="chai").with_base_instructions("Be calm.").with_tools([look])

    context = await builder.build("Where?")
    payload = weft.wire.to_wire("openai", context, model="plain")

    assert [message["role"] for message in payload["messages"]] == ["system", "user"]
    assert payload["messages"][1]["content"] == "Where?"
    assert [tool["function"]["name"] for tool in payload["tools"]] == ["look"]


async def test_P3_the_history_is_adjusted_to_the_model_and_tools_are_converted() -> None:
    builder = weft.ContextBuilder(recipe="pattern").with_base_instructions("BASE")
    context = await builder.with_messages([weft.Message(role="assistant", content="Hello!")]).build("Hi")

    payload = weft.wire.to_wire("gemini", context)

    assert [turn["role"] for turn in payload["contents"]] == ["user", "model", "user"]
    assert payload["contents"][0]["parts"] == [{"text": "[Conversation start]"}]
