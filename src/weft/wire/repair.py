"""Any history becomes one that a provider accepts. A view: what is stored is never changed.

Every call is followed by exactly one result, every result belongs to the call before it, ids are unique and
in allowed letters, nothing is blank. A history that is valid already comes out as it went in, and a repaired
one is valid, so repairing twice is repairing once. What is written for a message depends only on what came
before it, so that a longer history begins with the same bytes.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from weft.types.message import Message, ToolCall
from weft.wire import clean

INTERRUPTED = "[No result: the call was interrupted.]"
EMPTY = "(empty)"
START = "[Conversation start]"

_ROLES = frozenset({"system", "user", "assistant", "tool"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What a provider insists on in messages.

    `system` says whether a system message may stand inside the history; `start` whether the first message
    must be the user's.
    """

    ids: re.Pattern[str] = re.compile(r"[a-zA-Z0-9_-]{1,64}")
    longest_id: int = 64
    system: bool = False
    start: bool = False


RULES: Mapping[str, Rule] = {
    "anthropic": Rule(start=True),
    "openai": Rule(ids=re.compile(r"[a-zA-Z0-9_-]{1,40}"), longest_id=40, system=True),
    "openai_responses": Rule(system=True),
    "openrouter": Rule(ids=re.compile(r"[a-zA-Z0-9_-]{1,40}"), longest_id=40, system=True),
    "ollama": Rule(system=True),
    "gemini": Rule(ids=re.compile(r"[a-zA-Z0-9]{1,64}"), start=True),
}


@dataclass(slots=True)
class _Group:
    """A message, and behind it the results of its calls: one place for each."""

    message: Message
    results: list[Message | None] = field(default_factory=list)


def repair(provider: str, messages: Sequence[Message]) -> tuple[list[Message], list[str]]:
    """The messages as the provider accepts them, and what was done to them in sentences."""
    rule, notes = RULES[provider], list[str]()
    groups = _paired([_sendable(message, notes) for message in messages], notes)
    repaired = list[Message]()
    ids = _Ids(rule)
    for group in groups:
        message = _in_role(group.message, rule, notes)
        if not message.tool_calls and not message.content.strip() and not message.parts:
            notes.append("A message with nothing in it was left out.")
            continue
        calls = tuple(replace(call, id=ids.for_call(call.id)) for call in message.tool_calls)
        repaired.append(message if calls == message.tool_calls else _with_calls(message, calls))
        for call, result in zip(calls, group.results, strict=True):
            repaired.append(_result(call, result, notes))
    if rule.start and repaired and repaired[0].role != "user":
        repaired.insert(0, Message(role="user", content=START, origin="operator"))
        notes.append("The conversation began with the assistant, so a line of the user's was put before it.")
    return repaired, notes + ids.notes


def _paired(messages: Sequence[Message], notes: list[str]) -> list[_Group]:
    """Each call with its result, wherever that was; results without a call are left out."""
    groups = list[_Group]()
    waiting: dict[str, deque[tuple[_Group, int]]] = {}
    for message in messages:
        if message.role != "tool":
            group = _Group(message, [None] * len(message.tool_calls))
            groups.append(group)
            for id_ in {call.id for call in message.tool_calls}:
                waiting.pop(id_, None)  # an earlier call of that id is over, answered or not
            for at, call in enumerate(message.tool_calls):
                waiting.setdefault(call.id, deque()).append((group, at))
            continue
        slot = _slot(message, waiting)
        if slot is None:
            notes.append(f"A result of {message.tool_name or 'a tool'!r} without its call was left out.")
            continue
        group, at = slot
        group.results[at] = message
    return groups


def _slot(result: Message, waiting: dict[str, deque[tuple[_Group, int]]]) -> tuple[_Group, int] | None:
    """The call that a result answers: the first open one of its id, or without an id the first open one."""
    id_ = result.tool_call_id
    if id_ is None:
        id_ = next((key for key, slots in waiting.items() if slots and _named(slots[0], result)), "")
    slots = waiting.get(id_)
    return slots.popleft() if slots else None


def _named(slot: tuple[_Group, int], result: Message) -> bool:
    group, at = slot
    return result.tool_name in (None, group.message.tool_calls[at].name)


def _result(call: ToolCall, result: Message | None, notes: list[str]) -> Message:
    if result is None:
        notes.append(f"The call of {call.name!r} has no result: it was answered with a note.")
        return Message(
            role="tool", content=INTERRUPTED, tool_call_id=call.id, tool_name=call.name, origin="operator"
        )
    changes: dict[str, Any] = {}
    if result.tool_call_id != call.id:
        changes["tool_call_id"] = call.id
    if result.tool_name != call.name:
        changes["tool_name"] = call.name
    if not result.content.strip() and not result.parts:
        changes["content"] = EMPTY
    return replace(result, **changes) if changes else result


def _in_role(message: Message, rule: Rule, notes: list[str]) -> Message:
    """A role that the provider knows; only the assistant calls tools."""
    role = message.role if message.role in _ROLES else "user"
    if message.tool_calls:
        role = "assistant"
    elif role == "system" and not rule.system:
        role = "user"
    if role == message.role:
        return message
    notes.append(f"A message of the role {message.role!r} was sent as the {role}'s.")
    return replace(message, role=role)


def _with_calls(message: Message, calls: tuple[ToolCall, ...]) -> Message:
    """The message with other ids for its calls; what the provider said about each goes with it."""
    data = dict(message.provider_data)
    told = data.get("calls")
    if isinstance(told, Mapping):
        renamed = {
            new.id: told[old.id] for old, new in zip(message.tool_calls, calls, strict=True) if old.id in told
        }
        data["calls"] = renamed
    return replace(message, tool_calls=calls, provider_data=data)


def _sendable(message: Message, notes: list[str]) -> Message:
    """The message without what no provider takes, in its text, its names and its calls."""
    calls = tuple(
        ToolCall(id=clean.text(call.id), name=clean.name(call.name), arguments=clean.plain(call.arguments))
        for call in message.tool_calls
    )
    changes: dict[str, Any] = {
        "content": clean.text(message.content),
        "tool_calls": calls,
        "tool_name": message.tool_name and clean.name(message.tool_name),
        "tool_call_id": message.tool_call_id and clean.text(message.tool_call_id),
        "parts": tuple(clean.plain(part) for part in message.parts),
    }
    changed = {key: value for key, value in changes.items() if value != getattr(message, key)}
    if not changed:
        return message
    notes.append("Characters or names that no provider takes were replaced.")
    return replace(message, **changed)


class _Ids:
    """Ids that are valid and unique: one that is both stays, another is made from it and its place."""

    def __init__(self, rule: Rule) -> None:
        self._rule = rule
        self._used = set[str]()
        self.notes = list[str]()

    def for_call(self, id_: str) -> str:
        kept = id_
        if not self._rule.ids.fullmatch(id_) or id_ in self._used:
            kept = self._made(id_)
            self.notes.append("Ids of calls were changed: the provider does not take them as they are.")
        self._used.add(kept)
        return kept

    def _made(self, id_: str) -> str:
        stem = re.sub(r"[^a-zA-Z0-9]", "", id_)[: self._rule.longest_id - 12]
        number = len(self._used)
        while (made := f"{stem}{clean.digest(f'{number}:{id_}')}") in self._used:
            number += 1
        return made
