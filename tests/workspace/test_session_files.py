"""A conversation as a file, in our form and in miniclaw's."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import hypothesis.strategies as st
import pytest
from hypothesis import given

import weft
from weft.types.session import Session
from weft.workspace.session_files import read_session, to_lines, to_miniclaw

SESSION = Session(id="telegram_77", channel="telegram", conversation="77", sender="42", agent_id="iris")
CALL = weft.ToolCall(id="c1", name="look", arguments={"at": "sea"})
TALK = [
    weft.Message(role="user", content="Where?", timestamp=datetime(2026, 1, 2, tzinfo=UTC)),
    weft.Message(role="assistant", content="", tool_calls=(CALL,)),
    weft.Message(role="tool", content="there", tool_call_id="c1", tool_name="look"),
    weft.Message(role="assistant", content="There.\u2028\r\n"),
]


def imported(message: weft.Message) -> str:
    return message.to_json().removesuffix("}") + ', "origin": "import"}'


def test_our_file_brings_everything_back() -> None:
    found = read_session(to_lines(SESSION, TALK), "x")

    assert list(found.messages) == [replace(message, origin="import") for message in TALK]
    assert (found.id, found.channel, found.conversation) == ("telegram_77", "telegram", "77")
    assert (found.sender, found.agent_id) == ("42", "iris")


def test_a_file_of_miniclaw_brings_back_what_it_holds() -> None:
    found = read_session(to_miniclaw(SESSION, TALK), "x")

    assert [message.to_json() for message in found.messages] == [imported(message) for message in TALK]


def test_only_the_newest_fifty_go_into_a_file_of_miniclaw() -> None:
    many = [weft.Message(role="user", content=str(number)) for number in range(60)]

    data = json.loads(to_miniclaw(SESSION, many))

    assert [message["content"] for message in data["messages"]] == [str(n) for n in range(10, 60)]


def test_what_a_file_does_not_say_comes_from_its_name() -> None:
    found = read_session('{"messages": [{"role": "User", "content": "hi"}]}', "telegram_1_2")

    assert (found.id, found.channel, found.conversation) == ("telegram_1_2", "telegram", "1_2")
    assert [message.role for message in found.messages] == ["user"]


def test_calls_nested_below_a_function_are_understood() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": '{"at": "sea"}'}}
    data = {"messages": [{"role": "assistant", "content": None, "tool_calls": [call]}]}

    (message,) = read_session(json.dumps(data, indent=2), "x").messages

    assert message.tool_calls == (weft.ToolCall(id="c", name="look", arguments={"at": "sea"}),)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no session file"),
        ("{", "not JSON"),
        ("[]", "no session file"),
        ('{"messages": 3}', "no messages"),
        ('{"messages": [3]}', "message 1 has no role"),
        ('{"messages": [{"role": "pirate", "content": 3}]}', "message 1 has content that is no text"),
        ('{"messages": [{"role": "user", "content": "", "timestamp": "never"}]}', "message 1 cannot be read"),
        ('{"messages": [{"role": "user", "content": "", "tool_calls": [{}]}]}', "message 1 cannot be read"),
        ('{"kind": "weft-session"}\n{"role": 3}\n', "line 2 is no message"),
        ('{"kind": "weft-session"}\n{\n', "line 2 is no message"),
    ],
)
def test_a_damaged_file_says_where(text: str, words: str) -> None:
    with pytest.raises(weft.StoreError, match=words):
        read_session(text, "telegram_1")


@given(st.text(max_size=60) | st.recursive(st.none() | st.text() | st.integers(), st.lists).map(json.dumps))
def test_no_text_is_more_than_an_error(text: str) -> None:
    with pytest.raises(weft.StoreError):
        read_session(text, "x")
