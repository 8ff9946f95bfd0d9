"""Repair of histories: any history becomes one that a vendor accepts. What is stored never changes.

Every call is followed by exactly one result, every result belongs to the call before it, ids are unique and
in allowed letters, nothing is blank. A valid history comes out as it went in, and a repaired one is valid, so
repairing twice is repairing once. What is written for a message depends only on what came before it, so that
a longer history begins with the same bytes.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from weft.types.message import Message, ToolCall
from weft.wire import clean
from weft.wire.vendor import Rule

_INTERRUPTED = "[No result: the call was interrupted.]"
_EMPTY = "(empty)"
_START = "[Conversation start]"
_ROLES = frozenset({"system", "user", "assistant", "tool"})


@dataclass(slots=True)
class _Group:
    """A message, and a slot for the result of each of its calls."""

    message: Message
    results: list[Message | None] = field(default_factory=list)


@dataclass(slots=True)
class _Slot:
    """The place of one result. It is open until it is taken, or until another call has the same id."""

    group: _Group
    at: int
    is_open: bool = True


class _OpenCalls:
    """The calls that wait for a result, by their ids and by their tools: none is searched for."""

    def __init__(self) -> None:
        self._by_id: dict[str, deque[_Slot]] = {}
        self._by_tool: dict[str | None, deque[_Slot]] = {}

    def add(self, group: _Group) -> None:
        calls = group.message.tool_calls
        for call in calls:  # an earlier call of that id is over, answered or not
            for slot in self._by_id.pop(call.id, ()):
                slot.is_open = False
        for at, call in enumerate(calls):
            slot = _Slot(group, at)
            self._by_id.setdefault(call.id, deque()).append(slot)
            for tool in (call.name, None):
                self._by_tool.setdefault(tool, deque()).append(slot)

    def take(self, result: Message) -> _Slot | None:
        """Take the first open slot of a result's id; without an id, the first open one of its tool."""
        if result.tool_call_id is not None:
            return _first_open(self._by_id.get(result.tool_call_id))
        by_tool = _first_open(self._by_tool.get(result.tool_name))
        return by_tool or _first_open(self._by_id.get(""))


def _first_open(slots: deque[_Slot] | None) -> _Slot | None:
    while slots:
        slot = slots.popleft()
        if slot.is_open:
            slot.is_open = False
            return slot
    return None


def repair_messages(rule: Rule, messages: Sequence[Message]) -> tuple[list[Message], list[str]]:
    """Return the messages as a rule wants them, and a sentence for each repair."""
    notes, repaired = list[str](), list[Message]()
    ids = _Ids(rule)
    for group in _pair([_clean(message, notes) for message in messages], notes):
        message = _with_known_role(group.message, rule, notes)
        if not message.tool_calls and not message.content.strip() and not message.parts:
            notes.append("A message with nothing in it was left out.")
            continue
        calls = tuple(replace(call, id=ids.for_call(call.id)) for call in message.tool_calls)
        repaired.append(message if calls == message.tool_calls else _with_calls(message, calls))
        for call, result in zip(calls, group.results, strict=True):
            repaired.append(_result(call, result, notes))
    if rule.user_first and repaired and repaired[0].role != "user":
        repaired.insert(0, Message(role="user", content=_START, origin="operator"))
        notes.append("The conversation began with the assistant, so a line of the user's was put before it.")
    return repaired, notes + ids.notes


def _pair(messages: Sequence[Message], notes: list[str]) -> list[_Group]:
    """Group each call with its result, wherever that was. Results without a call are left out."""
    groups, calls = list[_Group](), _OpenCalls()
    for message in messages:
        if message.role != "tool":
            groups.append(_Group(message, [None] * len(message.tool_calls)))
            calls.add(groups[-1])
        elif slot := calls.take(message):
            slot.group.results[slot.at] = message
        else:
            notes.append(f"A result of {message.tool_name or 'a tool'!r} without its call was left out.")
    return groups


def _result(call: ToolCall, result: Message | None, notes: list[str]) -> Message:
    """Return the result of a call with its id and its name, or a note in its place."""
    if result is None:
        notes.append(f"The call of {call.name!r} has no result: it was answered with a note.")
        result = Message(role="tool", content=_INTERRUPTED, origin="operator")
    is_blank = not result.content.strip() and not result.parts
    content = _EMPTY if is_blank else result.content
    return replace(result, tool_call_id=call.id, tool_name=call.name, content=content)


def _with_known_role(message: Message, rule: Rule, notes: list[str]) -> Message:
    """Give a message a role that the vendor knows. Only the assistant calls tools."""
    role = message.role if message.role in _ROLES else "user"
    if message.tool_calls:
        role = "assistant"
    elif role == "system" and not rule.system_inside:
        role = "user"
    if role == message.role:
        return message
    notes.append(f"A message of the role {message.role!r} was sent as the {role}'s.")
    return replace(message, role=role)


def _with_calls(message: Message, calls: tuple[ToolCall, ...]) -> Message:
    """Give the calls of a message other ids. What the vendor signed of each call moves along."""
    data = dict(message.provider_data)
    signed = data.get("calls")
    if isinstance(signed, Mapping):
        pairs = zip(message.tool_calls, calls, strict=True)
        data["calls"] = {new.id: signed[old.id] for old, new in pairs if old.id in signed}
    return replace(message, tool_calls=calls, provider_data=data)


def _clean(message: Message, notes: list[str]) -> Message:
    """Replace what no vendor takes in the text, the names and the calls of a message."""
    calls = tuple(
        ToolCall(id=clean.text(call.id), name=clean.name(call.name), arguments=clean.plain(call.arguments))
        for call in message.tool_calls
    )
    values: dict[str, Any] = {
        "content": clean.text(message.content),
        "tool_calls": calls,
        "tool_name": message.tool_name and clean.name(message.tool_name),
        "tool_call_id": message.tool_call_id and clean.text(message.tool_call_id),
        "parts": tuple(clean.plain(part) for part in message.parts),
    }
    changes = {key: value for key, value in values.items() if value != getattr(message, key)}
    if not changes:
        return message
    notes.append("Characters or names that no provider takes were replaced.")
    return replace(message, **changes)


class _Ids:
    """Valid and unique ids. A valid unique id stays; another is replaced by one made from it."""

    def __init__(self, rule: Rule) -> None:
        self._rule = rule
        self._used = set[str]()
        self.notes = list[str]()

    def for_call(self, id_: str) -> str:
        if not self._rule.accepts_id(id_) or id_ in self._used:
            id_ = self._new(id_)
            self.notes.append("Ids of calls were changed: the provider does not take them as they are.")
        self._used.add(id_)
        return id_

    def _new(self, id_: str) -> str:
        stem = re.sub(r"[^a-zA-Z0-9]", "", id_)[: self._rule.longest_id - 12]
        number = len(self._used)
        while (new := f"{stem}{clean.digest(f'{number}:{id_}')}") in self._used:
            number += 1
        return new
