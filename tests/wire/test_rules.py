"""Every rule of the validators is shown to bite: a payload that breaks it, and what is said of that."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

import weft
from weft.wire import to_wire, violations

Payload = dict[str, Any]
LOOK = weft.ToolDefinition(name="look", description="Look.", parameters={"type": "object"})
CONTEXT = weft.Context(
    system_prompt="Be calm.",
    history=(
        weft.Message(role="user", content="Where?"),
        weft.Message(
            role="assistant",
            content="I look.",
            tool_calls=(
                weft.ToolCall(id="a", name="look", arguments={"at": 1}),
                weft.ToolCall(id="b", name="look"),
            ),
        ),
        weft.Message(role="tool", content="sea", tool_call_id="a", tool_name="look"),
        weft.Message(role="tool", content="sky", tool_call_id="b", tool_name="look"),
        weft.Message(role="assistant", content="There."),
    ),
    tools=(LOOK,),
    current_message="Thanks. And now?",
)


def put(*path: Any, value: Any) -> Callable[[Payload], None]:
    def change(payload: Payload) -> None:
        at: Any = payload
        for step in path[:-1]:
            at = at[step]
        at[path[-1]] = value

    return change


def drop(*path: Any) -> Callable[[Payload], None]:
    def change(payload: Payload) -> None:
        at: Any = payload
        for step in path[:-1]:
            at = at[step]
        del at[path[-1]]

    return change


def both(*changes: Callable[[Payload], None]) -> Callable[[Payload], None]:
    def change(payload: Payload) -> None:
        for one in changes:
            one(payload)

    return change


def repeat(*path: Any) -> Callable[[Payload], None]:
    def change(payload: Payload) -> None:
        at: Any = payload
        for step in path[:-1]:
            at = at[step]
        at.insert(path[-1], copy.deepcopy(at[path[-1]]))

    return change


A = ("messages", 1, "content")
R = ("messages", 2, "content")
ANTHROPIC = {
    "A1: there are": put("messages", value=[]),
    "A1: the first": drop("messages", 0),
    "A2": repeat("messages", 0),
    "A3": put("messages", 3, "role", value="system"),
    "A4: calls and": drop("messages", 2, "content", 1),
    "A4: a call without": drop("messages", slice(2, None)),
    "A5": lambda p: p["messages"][2]["content"].insert(0, {"type": "text", "text": "x"}),
    "A6": lambda p: p["messages"][1]["content"].append({"type": "text", "text": "x"}),
    "A7: an id with": both(put(*A, 1, "id", value="ü"), put(*R, 0, "tool_use_id", value="ü")),
    "A7: an id that": both(put(*A, 1, "id", value="b"), put(*R, 0, "tool_use_id", value="b")),
    "A8: a tool's name": put("tools", 0, "name", value="no way"),
    "A8: two tools": repeat("tools", 0),
    "A8: tools are": put("tools", value=[]),
    "A8: an input": put(*A, 1, "input", value="x"),
    "A8: a schema": put("tools", 0, "input_schema", value={"type": "string"}),
    "A9: a blank text": put("messages", 0, "content", 0, "text", value=" "),
    "A9: the system": put("system", value=" "),
    "A9: a cache mark": lambda p: p["messages"][1]["content"].insert(
        0, {"type": "thinking", "cache_control": {}}
    ),
    "A10: a message": put("messages", 0, "content", value=[]),
    "A10: an empty": put(*R, 0, "content", value=[]),
    "A11": drop("messages", -1),
    "A12": lambda p: p["messages"][3]["content"].append({"type": "thinking"}),
    "A13": lambda p: (
        [put("messages", 2, "content", 0, "cache_control", value={})(p)]
        + [m["content"][0].update(cache_control={}) for m in p["messages"]]
        + [m["content"][-1].update(cache_control={}) for m in p["messages"]]
    ),
    "A16": put("tools", 0, "name", value="other"),
    "max_tokens": drop("max_tokens"),
    "U1: a character": put("messages", 0, "content", 0, "text", value="\ud800"),
    "U1: a NUL": put("messages", 0, "content", 0, "text", value="\0"),
    "U2": put("messages", 0, "content", 0, "text2", value=float("nan")),
}
CALL = ("messages", 2, "tool_calls", 0)
OPENAI = {
    "there are no": put("messages", value=[]),
    "OA1: a result": drop("messages", 2),
    "OA1: a call that is not answered": drop("messages", 4),
    "OA1: a call without": drop("messages", slice(3, None)),
    "OA1: a call that is not the": put("messages", 2, "role", value="user"),
    "OA1: an id": lambda p: (
        put(*CALL, "id", value="b")(p),
        put("messages", 3, "tool_call_id", value="b")(p),
    ),
    "OA2: tool_calls": put("messages", 1, "tool_calls", value=[]),
    "OA2: tools": put("tools", value=[]),
    "OA3: a tool's": put("tools", 0, "function", "name", value="no way"),
    "OA3: two": repeat("tools", 0),
    "OA3: arguments": put(*CALL, "function", "arguments", value={"at": 1}),
    "OA3: an id": both(put(*CALL, "id", value="x" * 41), put("messages", 3, "tool_call_id", value="x" * 41)),
    "OA4: no content": put("messages", 1, "content", value=None),
    "OA4: a blank": put("messages", 1, "content", value=""),
    "OA4: an empty": put("messages", 1, "content", value=[]),
    "OA4: a result": put("messages", 3, "content", value=" "),
    "OA6": drop("messages", -1),
    "a role": put("messages", 1, "role", value="pirate"),
    "U1": put("messages", 1, "content", value="\0"),
}
RESPONSES = {
    "there is no": put("input", value=[]),
    "R1: calls and": drop("input", 4),
    "R1: a result before": lambda p: p["input"].insert(0, p["input"].pop(4)),
    "R1: a result that": put("input", 4, "output", value=3),
    "R1: an id": lambda p: (
        put("input", 2, "call_id", value="b")(p),
        put("input", 4, "call_id", value="b")(p),
    ),
    "R2": lambda p: p["input"].insert(4, {"type": "reasoning", "summary": []}),
    "R3": lambda p: p["input"].insert(1, {"type": "reasoning"}),
    "a tool's": put("tools", 0, "name", value="no way"),
    "two tools": repeat("tools", 0),
    "tools are": put("tools", value=[]),
    "arguments": put("input", 2, "arguments", value={}),
    "a message without": put("input", 0, "content", value=[]),
    "a blank text": put("input", 0, "content", 0, "text", value=""),
    "blank instructions": put("instructions", value=" "),
    "an item": put("input", 0, "type", value="odd"),
    "the last": drop("input", -1),
    "U1": put("instructions", value="a\0"),
}
OLLAMA = {
    "there are no": put("messages", value=[]),
    "L1": put("messages", 1, "role", value="pirate"),
    "L2": put(*CALL, "function", "arguments", value="{}"),
    "L3: results": put("messages", 3, "tool_name", value="other"),
    "L3: a call": drop("messages", 4),
    "L4: content": put("messages", 1, "content", value=None),
    "L4: a blank": put("messages", 1, "content", value=" "),
    "L5": put("messages", 1, "images", value=[3]),
    "L6": lambda p: [m.update(role="system") for m in p["messages"] if m["role"] == "user"],
    "L7": drop("options", "num_ctx"),
    "the last": drop("messages", -1),
    "tools are": put("tools", value=[]),
    "a tool's": put("tools", 0, "function", "name", value="no way"),
    "U1": put("messages", 1, "content", value="\ud800"),
}
FIRST_CALL = ("contents", 1, "parts", 1)
GEMINI = {
    "G1: there": put("contents", value=[]),
    "G1: a role": put("contents", 0, "role", value="assistant"),
    "G2": drop("contents", 0),
    "G3: a turn": put("contents", 0, "parts", value=[]),
    "G3: a part": put("contents", 0, "parts", 0, value={}),
    "G3: a blank text": put("contents", 0, "parts", 0, "text", value=" "),
    "G3: a blank system": put("systemInstruction", "parts", 0, "text", value=" "),
    "G4": put("contents", 1, "role", value="user"),
    "G5: calls": drop("contents", 2, "parts", 0),
    "G5: a call": drop("contents", slice(2, None)),
    "G6": drop(*FIRST_CALL, "thoughtSignature"),
    "G7": put("contents", 2, "parts", 0, "functionResponse", "response", value="x"),
    "G9": repeat("contents", 0),
    "the last": drop("contents", -1),
    "arguments": put(*FIRST_CALL, "functionCall", "args", value="x"),
    "a tool's": put("tools", 0, "functionDeclarations", 0, "name", value="no way"),
    "two tools": repeat("tools", 0, "functionDeclarations", 0),
    "tools are": put("tools", value=[]),
    "U1": put("contents", 0, "parts", 0, "text", value="\0"),
}
RULES: dict[str, dict[str, Callable[[Payload], Any]]] = {
    "anthropic": ANTHROPIC,
    "openai": OPENAI,
    "openai_responses": RESPONSES,
    "openrouter": OPENAI,
    "ollama": OLLAMA,
    "gemini": GEMINI,
}


@pytest.mark.parametrize(
    ("provider", "rule"), [(name, rule) for name, rules in RULES.items() for rule in rules]
)
def test_a_request_that_breaks_a_rule_is_found_out(provider: str, rule: str) -> None:
    payload = copy.deepcopy(to_wire(provider, CONTEXT, model="plain"))
    assert violations(provider, payload) == []

    RULES[provider][rule](payload)

    assert any(found.startswith(rule) for found in violations(provider, payload)), violations(
        provider, payload
    )


def test_an_unknown_provider_gets_a_suggestion() -> None:
    with pytest.raises(weft.ConfigError, match="did you mean 'anthropic'"):
        to_wire("antropic", CONTEXT)
    with pytest.raises(weft.ConfigError):
        violations("telegraph", {})
