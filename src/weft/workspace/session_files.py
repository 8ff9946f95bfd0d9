"""One conversation as a file: JSON Lines of ours, or a session file of miniclaw, both ways. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from weft.errors import ContextError, StoreError, WrongPath
from weft.types.codec import dump_json, to_dict
from weft.types.message import Message, ToolCall
from weft.types.session import Session

MINICLAW_MESSAGES = 50
_KIND = "weft-session"
_ROLES = ("system", "user", "assistant", "tool")


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFile:
    """A conversation as a file holds it."""

    id: str
    channel: str
    conversation: str
    sender: str
    messages: Sequence[Message]
    agent_id: str = ""


def to_lines(session: Session, messages: Sequence[Message]) -> str:
    """Write a conversation: who and where in the first line, a message in each further one."""
    head = {
        "kind": _KIND,
        "id": session.id,
        "channel": session.channel,
        "conversation": session.conversation,
        "sender": session.sender,
        "agent_id": session.agent_id,
    }
    return "\n".join([dump_json(head), *(message.to_json() for message in messages)]) + "\n"


def to_miniclaw(session: Session, messages: Sequence[Message]) -> str:
    """Write a session file of miniclaw: the newest fifty messages."""
    fields = [_miniclaw_message(message) for message in messages[-MINICLAW_MESSAGES:]]
    data = {
        "id": session.id,
        "channel": session.channel,
        "chat_id": session.conversation,
        "messages": fields,
    }
    return dump_json(data) + "\n"


def read_session(text: str, name: str) -> SessionFile:
    """Read the conversation in a file of either kind; `name` is the file's, without its ending.

    Raises:
        StoreError: it is neither, or it is damaged; the sentence says where.
    """
    if not text.lstrip("\ufeff").lstrip().startswith("{"):
        raise WrongPath(f"{name} is no session file: `weft sessions export` writes one.")
    first, _, rest = text.lstrip("\ufeff").partition("\n")
    head = _parsed(first, name, "line 1") if first.strip().endswith("}") else None
    if isinstance(head, Mapping) and head.get("kind") == _KIND:
        lines = [(number, line) for number, line in enumerate(rest.split("\n"), 2) if line.strip()]
        messages = [_own_message(line, name, f"line {number}") for number, line in lines]
        return _session(head, str(head.get("conversation", "")), messages, name)
    return _miniclaw(_parsed(text, name, "it"), name)


def _miniclaw(data: Any, name: str) -> SessionFile:
    if not isinstance(data, Mapping) or not isinstance(data.get("messages"), list):
        raise WrongPath(f"{name} is no session file: there are no messages in it.")
    messages = [
        _message(message, name, f"message {number}") for number, message in enumerate(data["messages"], 1)
    ]
    session_id = str(data.get("id") or data.get("session_id") or name)
    channel, _, chat = session_id.partition("_")
    head = {"id": session_id, "channel": data.get("channel") or channel, "sender": data.get("sender", "")}
    return _session(head, str(data.get("chat_id") or chat or session_id), messages, name)


def _session(
    head: Mapping[str, Any], conversation: str, messages: Sequence[Message], name: str
) -> SessionFile:
    return SessionFile(
        id=str(head.get("id") or name),
        channel=str(head.get("channel", "")),
        conversation=conversation,
        sender=str(head.get("sender") or ""),
        agent_id=str(head.get("agent_id") or ""),
        messages=messages,
    )


def _own_message(line: str, name: str, where: str) -> Message:
    try:
        return Message.from_json(line)
    except ContextError as error:
        raise StoreError(f"{name} is damaged: {where} is no message ({error}).") from error


def _message(data: Any, name: str, where: str) -> Message:
    """Read a message of miniclaw: role, content, timestamp, tool_calls. A role may begin with a capital."""
    if not isinstance(data, Mapping) or not isinstance(data.get("role"), str):
        raise StoreError(f"{name} is damaged: {where} has no role.")
    role, content, stamp = data["role"].lower(), data.get("content") or "", data.get("timestamp")
    if role not in _ROLES or not isinstance(content, str):
        raise StoreError(f"{name} is damaged: {where} has an unknown role or content that is no text.")
    try:
        return Message(
            role=role,
            content=content,
            timestamp=datetime.fromisoformat(str(stamp)) if stamp else None,
            tool_calls=tuple(_call(call) for call in data.get("tool_calls") or ()),
            tool_call_id=data.get("tool_call_id"),
            tool_name=data.get("tool_name"),
            origin="import",
        )
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise StoreError(f"{name} is damaged: {where} cannot be read ({error}).") from error


def _call(data: Mapping[str, Any]) -> ToolCall:
    """Read a call of miniclaw, or one nested below `function` with its arguments as text."""
    inner = data.get("function") or data
    arguments = inner.get("arguments") or {}
    parsed = json.loads(arguments) if isinstance(arguments, str) else arguments
    return ToolCall(id=str(data.get("id") or ""), name=str(inner["name"]), arguments=dict(parsed))


def _miniclaw_message(message: Message) -> dict[str, Any]:
    fields = {
        "role": message.role,
        "content": message.content,
        "timestamp": message.timestamp.isoformat() if message.timestamp else None,
        "tool_calls": [to_dict(call) for call in message.tool_calls] or None,
        "tool_call_id": message.tool_call_id,
        "tool_name": message.tool_name,
    }
    return {key: value for key, value in fields.items() if value is not None}


def _parsed(text: str, name: str, where: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise StoreError(f"{name} is damaged: {where} is not JSON ({error}).") from error
