"""One turn at run time: what the lines of all four systems promise of it."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

import weft
from weft.config import load_config
from weft.turn.classify import RouteSettings


async def app(
    *script: str | weft.Reply | BaseException,
    recipe: str = "omega",
    tools: Iterable[object] = (),
    rules: Iterable[weft.ToolRule] = (),
) -> tuple[weft.Assistant, weft.ScriptedProvider]:
    provider = weft.ScriptedProvider(script)
    config = load_config().with_overrides(recipe=recipe)
    made = await weft.connect(config, provider=provider, tools=tools, rules=rules)  # type: ignore[arg-type]
    return made, provider


def calling(*names: str) -> weft.Reply:
    calls = (weft.ToolCall(id=f"c{n}", name=name) for n, name in enumerate(names))
    return weft.Reply(tool_calls=tuple(calls), stop_reason="tools")


def results(context: weft.Context) -> list[str]:
    return [step.content for step in context.steps if step.role == "tool"]


def context() -> str:
    return "read"


def search() -> str:
    return "found"


def api_request() -> str:
    return "asked"


def send_message() -> str:
    return "sent"


TOOLS = (context, search, api_request, send_message)


async def test_O41_the_context_is_made_once_for_each_incoming_message() -> None:
    made, provider = await app(calling("search"), calling("search"), "Done.", tools=TOOLS)

    await made.ask("find it", session="s")

    first, *later = provider.requests
    assert len(later) == 2
    for request in later:
        same = (request.system_prompt, request.history, request.current_message, request.tools)
        assert same == (first.system_prompt, first.history, first.current_message, first.tools)
    await made.close()


async def test_O45_the_exchange_is_stored_after_the_call_and_shows_in_later_history() -> None:
    made, provider = await app("Four.", "You asked for a sum.")

    await made.ask("2 + 2?", session="s")
    assert provider.requests[0].history == (), "it was not stored before the call"
    await made.ask("What did I ask?", session="s")

    assert [(m.role, m.content) for m in provider.requests[1].history] == [
        ("user", "2 + 2?"),
        ("assistant", "Four."),
    ]
    await made.close()


async def test_O45_nothing_is_stored_when_the_call_fails() -> None:
    made, provider = await app(weft.ProviderError("busy"), "Hello.")

    with pytest.raises(weft.ProviderError):
        await made.ask("one", session="s")
    await made.ask("two", session="s")

    assert provider.requests[1].history == ()
    await made.close()


async def test_P38_P42_a_tool_is_called_at_most_so_many_times_in_a_turn() -> None:
    rules = [weft.ToolRule.max_calls("api_request", 3)]
    script = (calling(*["api_request"] * 4), "Done.", calling("api_request"), "Again.")
    made, provider = await app(*script, tools=TOOLS, rules=rules)

    await made.ask("go", session="s")
    assert results(provider.requests[1]) == [
        *["asked"] * 3,
        "error: refused by a rule: Call `api_request` at most 3 times.",
    ]

    await made.ask("go on", session="s")
    assert results(provider.requests[3]) == ["asked"], "the next turn counts anew"
    await made.close()


async def test_P38_P42_a_tool_that_requires_another_is_refused_before_it() -> None:
    rules = [weft.ToolRule.requires_prior("send_message", "search")]
    script = (calling("send_message"), calling("search"), calling("send_message"), "Done.")
    made, provider = await app(*script, tools=TOOLS, rules=rules)

    await made.ask("go", session="s")

    assert results(provider.requests[-1]) == [
        "error: refused by a rule: Call `send_message` only after calling `search`.",
        "found",
        "sent",
    ]
    await made.close()


async def test_P38_the_tool_that_must_come_first_blocks_all_others_until_then() -> None:
    script = (calling("search"), calling("context"), calling("search"), "Done.")
    made, provider = await app(*script, tools=TOOLS, rules=[weft.ToolRule.start_constraint("context")])

    await made.ask("go", session="s")

    assert results(provider.requests[-1]) == [
        "error: refused by a rule: Call `context` first before any other tools.",
        "read",
        "found",
    ]
    await made.close()


async def test_P38_P40_a_tool_that_ends_the_conversation_ends_the_turn() -> None:
    rules = [weft.ToolRule.exit_loop("send_message"), weft.ToolRule.continue_loop("search")]
    script = (calling("search"), calling("send_message", "search"), calling("send_message"), "Never said.")
    made, provider = await app(*script, tools=TOOLS, rules=rules)

    reply = await made.ask("go", session="s")

    assert len(provider.requests) == 3, "`search` went on, `send_message` alone ended it"
    assert reply.text == "sent"
    await made.close()


async def test_P39_P41_the_rules_that_bind_are_the_rules_that_are_shown() -> None:
    rules = [weft.ToolRule.exit_loop("send_message"), weft.ToolRule.start_constraint("context")]
    made, provider = await app("Done.", recipe="pattern", tools=TOOLS, rules=rules)

    await made.ask("go", session="s")

    assert provider.requests[0].system_prompt.endswith(
        "# Tool Execution Rules\n\n- Call `context` first before any other tools\n"
        "- The conversation will end after calling `send_message`"
    )
    await made.close()


async def test_C5_every_call_of_a_turn_carries_system_history_and_tools() -> None:
    made, provider = await app(
        "Hello.", calling("search"), "Done.", recipe="chai", tools=[weft.ToolDefinition(name="x"), search]
    )

    await made.ask("hi", session="s")
    await made.ask("find it", session="s")

    _, first, second = provider.requests
    assert [m.content for m in first.history] == ["hi", "Hello."]
    assert (second.system_prompt, second.history, second.tools) == (
        first.system_prompt,
        first.history,
        first.tools,
    )
    await made.close()


async def test_C3_the_tool_loop_of_chai_has_five_rounds() -> None:
    made, provider = await app(*[calling("search")] * 9, recipe="chai", tools=TOOLS)

    reply = await made.ask("go", session="s")

    assert len([m for m in provider.requests[-1].steps if m.tool_calls]) == 5
    assert reply.text == "[The limit of 5 rounds of tool calls was reached before there was an answer.]"
    await made.close()


async def test_O9_the_route_sets_the_model_of_the_context_and_the_receipt_says_why() -> None:
    provider = weft.ScriptedProvider(["1. Look\n2. Write", "Done.", "DIRECT", "Hello."])
    routing = RouteSettings(enabled=True, direct_model="gpt-4.1", steps_model="gpt-4o")
    made = await weft.connect(replace(load_config(), route=routing), provider=provider)

    reply = await made.ask("plan my trip", session="s")
    await made.ask("hi", session="s")

    assert [request.model for request in provider.requests] == [None, "gpt-4o", None, "gpt-4.1"]
    assert reply.receipt is not None
    assert reply.receipt.model == "gpt-4o"
    assert reply.receipt.provider_reason == "the message was routed to gpt-4o: it takes 2 steps"
    await made.close()
