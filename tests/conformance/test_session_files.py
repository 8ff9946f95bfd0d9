"""Sessions as files: miniclaw's and Chai's, as those programs write them, and files made by hand."""

import json
from datetime import UTC, datetime

import weft
from weft.types.session import Session
from weft.workspace.session_files import read_session, to_chai, to_miniclaw

SESSION = Session(id="telegram_77", channel="telegram", conversation="77", sender="42", agent_id="iris")
CALL = weft.ToolCall(id="c1", name="look", arguments={"at": "sea"})
TALK = [
    weft.Message(role="user", content="Where?", timestamp=datetime(2026, 1, 2, tzinfo=UTC)),
    weft.Message(role="assistant", content="", tool_calls=(CALL,)),
    weft.Message(role="tool", content="there", tool_call_id="c1", tool_name="look"),
    weft.Message(role="assistant", content="There.\u2028\r\n"),
]


def test_M30_a_file_of_miniclaw_is_written_as_that_program_writes_it() -> None:
    data = json.loads(to_miniclaw(SESSION, TALK))

    assert {key: value for key, value in data.items() if key != "messages"} == {
        "session_id": "telegram_77",
        "channel": "telegram",
        "chat_id": "77",
        "created_at": "2026-01-02T00:00:00Z",
        "last_accessed": "2026-01-02T00:00:00Z",
    }
    assert data["messages"] == [
        {"role": "user", "content": "Where?", "timestamp": "2026-01-02T00:00:00Z"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "c1", "name": "look", "arguments": '{"at": "sea"}'}],
        },
        {"role": "tool_result", "content": "there", "tool_call_id": "c1"},
        {"role": "assistant", "content": "There.\u2028\r\n"},
    ]


def test_M11_M30_M31_a_file_made_by_hand_from_miniclaws_document_is_read() -> None:
    call = {"id": "a", "name": "ls", "arguments": '{"dir": "notes"}'}
    messages = [
        {"role": "User", "content": "List my notes", "timestamp": "2026-02-01T10:00:00Z"},
        {"role": "assistant", "content": "", "timestamp": "2026-02-01T10:00:01Z", "tool_calls": [call]},
        {"role": "tool_result", "content": "todo.md", "tool_call_id": "a"},
        {"role": "narrator", "content": "Time passed."},
    ]
    head = {"session_id": "telegram_5", "channel": "telegram", "chat_id": "5"}
    times = {"created_at": "2026-02-01T10:00:00Z", "last_accessed": "2026-02-01T11:00:00Z"}

    found = read_session(json.dumps({**head, **times, "messages": messages}), "telegram_5")

    assert (found.id, found.channel, found.conversation) == ("telegram_5", "telegram", "5")
    assert [message.role for message in found.messages] == ["user", "assistant", "tool", "user"]
    assert found.messages[1].tool_calls[0].arguments == {"dir": "notes"}
    assert (found.messages[2].tool_call_id, found.messages[2].tool_name) == ("a", "ls")
    assert found.notes == ("telegram_5: messages of the role narrator are read as the user's.",)


def test_C1_C17_a_session_of_chai_is_read_and_written() -> None:
    call = {"function": {"name": "look", "arguments": {"at": "sea"}}}
    data = {
        "session_id": "s1",
        "channel": "telegram",
        "conversation": "9",
        "messages": [
            {"role": "user", "content": "Where?"},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "content": "there", "tool_name": "look"},
            {"role": "assistant", "content": "There."},
        ],
    }

    found = read_session(json.dumps(data), "s1")
    session = Session(id=found.id, channel=found.channel, conversation=found.conversation)

    assert (found.id, found.channel, found.conversation) == ("s1", "telegram", "9")
    assert found.messages[1].tool_calls[0].id
    assert json.loads(to_chai(session, found.messages)) == data
