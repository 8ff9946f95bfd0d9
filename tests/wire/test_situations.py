"""Situations that made other programs send requests which were refused, each as a test."""

from collections.abc import Sequence

import pytest

import weft
from weft.wire import PROVIDERS, repair, to_wire, violations
from weft.wire.clean import compact

CALL_A, CALL_B = weft.ToolCall(id="a", name="look"), weft.ToolCall(id="b", name="look")


def said(role: str, content: str = "") -> weft.Message:
    return weft.Message(role=role, content=content)


def calls(*made: weft.ToolCall, content: str = "") -> weft.Message:
    return weft.Message(role="assistant", content=content, tool_calls=made)


def result(id_: str | None, content: str = "seen") -> weft.Message:
    return weft.Message(role="tool", content=content, tool_call_id=id_, tool_name="look")


ASK = said("user", "x")
SITUATIONS: dict[str, Sequence[weft.Message]] = {
    "the history begins with the assistant": [said("assistant", "Hello!")],
    "the history begins with a result whose call was cut away": [result("a"), said("assistant", "So.")],
    "a call was interrupted and the user went on": [ASK, calls(CALL_A), said("user", "y")],
    "a call is the last thing there is": [ASK, calls(CALL_A)],
    "one of two parallel calls has no result": [ASK, calls(CALL_A, CALL_B), result("b")],
    "parallel results came in another order": [
        ASK,
        calls(CALL_A, CALL_B),
        result("b"),
        result("a"),
    ],
    "a result came twice": [ASK, calls(CALL_A), result("a", "one"), result("a", "two")],
    "a result came after the user had gone on": [
        *(ASK, calls(CALL_A), said("user", "y"), result("a"), said("assistant", "z")),
    ],
    "a summary was put between a call and its result": [
        *(ASK, calls(CALL_A), said("system", "Summary: ..."), result("a")),
    ],
    "the same id was used in two turns": [
        *(ASK, calls(CALL_A), result("a"), said("assistant", "y")),
        *(ASK, calls(CALL_A), result("a"), said("assistant", "y")),
    ],
    "two calls of one message share an id": [
        ASK,
        calls(CALL_A, CALL_A),
        result("a"),
        result("a"),
    ],
    "an id comes from another provider": [
        *(
            ASK,
            calls(weft.ToolCall(id="functions.look:0", name="look")),
            result("functions.look:0"),
        ),
    ],
    "an id is as long as a page": [
        *(ASK, calls(weft.ToolCall(id="i" * 200, name="look")), result("i" * 200)),
    ],
    "a result has no id": [ASK, calls(CALL_A), result(None)],
    "a result is blank": [ASK, calls(CALL_A), result("a", " \n")],
    "an assistant said nothing": [ASK, said("assistant", ""), said("user", "y")],
    "users spoke three times in a row": [ASK, said("user", "y"), said("user", "z")],
    "assistants spoke twice in a row": [ASK, said("assistant", "y"), said("assistant", "z")],
    "text and calls in one message": [ASK, calls(CALL_A, content="I look."), result("a")],
    "a system message stands inside": [
        ASK,
        said("system", "Be brief."),
        said("assistant", "y"),
    ],
    "half a character was cut off": [said("user", "x \ud83d"), said("assistant", "y\0")],
    "a tool was renamed to something no provider takes": [
        *(ASK, calls(weft.ToolCall(id="a", name="my tool/2")), result("a")),
    ],
    "there was never anything": [],
}


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("situation", SITUATIONS)
def test_the_request_is_valid_and_says_what_was_said(provider: str, situation: str) -> None:
    history = SITUATIONS[situation]
    context = weft.Context(system_prompt="S", history=tuple(history), current_message="Go on.")

    payload = to_wire(provider, context)

    assert violations(provider, payload) == []
    text = compact(payload)
    for message in history:
        if message.role != "tool" and message.content.strip() and message.content.isprintable():
            assert message.content in text


@pytest.mark.parametrize("provider", PROVIDERS)
def test_every_repair_is_told(provider: str) -> None:
    for situation in ("a call was interrupted and the user went on", "a result came twice"):
        assert repair(provider, SITUATIONS[situation])[1] != []
    valid = [said("user", "x"), calls(CALL_A, content="I look."), result("a"), said("assistant", "y")]
    assert repair(provider, valid) == (valid, [])


def test_ids_are_changed_so_that_no_two_become_one() -> None:
    odd = [weft.ToolCall(id=id_, name="look") for id_ in ("a.b", "a:b", "a-b", "ab", "a/b")]
    history = [said("user", "x"), calls(*odd), *(result(call.id) for call in odd)]

    for provider in PROVIDERS:
        repaired, _ = repair(provider, history)
        assert len({call.id for call in repaired[1].tool_calls}) == 5


@pytest.mark.parametrize("provider", PROVIDERS)
def test_only_offered_tools_are_declared_whatever_the_history_calls(provider: str) -> None:
    made_up = weft.ToolCall(id="b", name="fly")
    history = (ASK, calls(CALL_A, made_up), result("a"), result("b", "no such tool"), said("assistant", "y"))
    look = weft.ToolDefinition(name="look", description="Look.", parameters={"type": "object"})

    for tools in ((), (look,)):
        payload = to_wire(provider, weft.Context(history=history, current_message="Go on.", tools=tools))
        declared = compact(payload.get("tools", []))
        assert violations(provider, payload) == []
        assert "fly" not in declared
        assert ("look" in declared) is bool(tools)
        assert "fly" in compact(payload), "what happened is still told"


def test_calls_of_tools_that_are_not_offered_become_text_where_the_vendor_wants_them_declared() -> None:
    gone = weft.ToolCall(id="b", name="fly", arguments={"to": "Rome"})
    history = (ASK, calls(gone, CALL_A, content="I look."), result("b", "landed"), result("a"))
    look = weft.ToolDefinition(name="look", parameters={"type": "object"})

    messages = to_wire(
        "anthropic", weft.Context(history=history, current_message="Go on.", tools=(look,)), model="unknown"
    )["messages"]

    assert [block["type"] for block in messages[1]["content"]] == ["text", "tool_use"]
    assert messages[1]["content"][0]["text"] == 'I look.\n\n[Called fly with {"to":"Rome"}]'
    assert [block["type"] for block in messages[2]["content"]] == ["tool_result", "text", "text"]
    assert messages[2]["content"][1]["text"] == "[Result of fly]\nlanded"


def test_a_result_belongs_to_the_newest_call_of_its_id() -> None:
    history = [ASK, calls(CALL_A), said("user", "y"), calls(CALL_A), result("a", "the second")]

    for provider in PROVIDERS:
        repaired, _ = repair(provider, history)
        results = [message.content for message in repaired if message.role == "tool"]
        assert results == ["[No result: the call was interrupted.]", "the second"]
