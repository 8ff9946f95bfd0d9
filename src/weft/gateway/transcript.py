"""Comparison of a transcript that an app sends with the messages that are stored.

An app that keeps its own conversation sends all of it with each request. Its session is identified by the
sender, the instructions and the first message of the user. Only new messages are added to the log.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from weft.gateway.sanitize import escaped
from weft.types.message import Message
from weft.types.request import TurnRequest

COMPARED = 500
"""How many of the newest messages of a log are compared with a transcript."""
_FROM_APP = "import"
"""The origin of results of tools that an app ran."""
_MOST_CANDIDATES = 8
"""How many messages of a log with one id of a call are compared: ids repeat where a model numbers them."""


@dataclass(frozen=True, slots=True)
class Match:
    """The part of a sent exchange that the log already has.

    `count` is the number of sent messages that are in the log. `steps` has the messages of the log that
    follow the user's message; calls of Weft's own tools can be among them, which the app never sees.
    """

    count: int = 0
    steps: tuple[Message, ...] = ()


def match(log: Sequence[Message], history: Sequence[Message], exchange: Sequence[Message]) -> Match:
    """Find how much of a sent exchange is already the last exchange of the log.

    An app may leave out the oldest messages, or send others than were stored: messages of its history that
    the log does not have are skipped. The same question asked twice in a row is two exchanges.
    """
    places = _Places(log)
    position = 0
    for message in history:
        position = places.after(message, position) or position
    asked = [at for at, message in enumerate(log) if message.role == "user" and message.origin == "user"]
    if not asked or asked[-1] < position or places.after(exchange[0], asked[-1]) != asked[-1] + 1:
        return Match()
    first = end = asked[-1] + 1
    count = 1
    for message in exchange[1:]:
        after = places.after(message, end)
        if after is None:
            break
        count, end = count + 1, after
    return Match(count, tuple(log[first : _with_results(log, end)]))


def is_same(log: Sequence[Message], history: Sequence[Message]) -> bool:
    """Return whether an app sends exactly the conversation that is stored.

    Calls of Weft's own tools, their results and notes of Weft are in the log alone. What the model said
    before such a call may be in the app's answer or not: it is in one that was streamed.
    """
    stored, sent = _exchanges(log), _exchanges(history)
    return len(stored) == len(sent) and all(map(_is_same_exchange, stored, sent))


def is_same_end(log: Sequence[Message], history: Sequence[Message]) -> bool:
    """Return whether the newest messages of a log are at the end of what an app sends.

    The first exchange of the log is not compared, because its beginning may be missing.
    """
    stored = _exchanges(log)[1:]
    return all(map(_is_same_exchange, stored, _exchanges(history)[-len(stored) :] if stored else ()))


def _exchanges(messages: Sequence[Message]) -> list[list[Message]]:
    """Part a conversation into exchanges, each of which begins with a message of the user."""
    exchanges: list[list[Message]] = []
    for message in messages:
        if message.role == "user" and message.origin == "operator":
            continue  # a note of Weft
        if message.role == "user" or not exchanges:
            exchanges.append([])
        exchanges[-1].append(message)
    return exchanges


def _is_same_exchange(stored: Sequence[Message], sent: Sequence[Message]) -> bool:
    if _said(stored, "user") != _said(sent, "user"):
        return False
    results = {one.tool_call_id: one for one in stored if one.role == "tool"}
    own = {id_ for id_, result in results.items() if result.origin != _FROM_APP}
    theirs = [
        one for one in stored if not one.tool_calls or any(call.id not in own for call in one.tool_calls)
    ]
    if _said(sent, "assistant") not in (_said(theirs, "assistant"), _said(stored, "assistant")):
        return False
    if [call for call in _calls(stored) if call[0] not in own] != _calls(sent):
        return False
    returned = [(one.tool_call_id, one.content) for one in stored if one.tool_call_id not in own]
    return [pair for pair in returned if pair[0]] == [
        (one.tool_call_id, one.content) for one in sent if one.role == "tool"
    ]


def _calls(messages: Sequence[Message]) -> list[tuple[str, str, dict[str, Any]]]:
    return [(call.id, call.name, dict(call.arguments)) for one in messages for call in one.tool_calls]


def _said(messages: Sequence[Message], role: str) -> str:
    """Return what one side said, without spaces. The desk escapes what a user says before it is stored."""
    text = "".join(one.content for one in messages if one.role == role)
    return "".join((escaped(text) if role == "user" else text).split())


def conversation_name(request: TurnRequest) -> str:
    """Return a name that stays the same while a conversation grows."""
    first = next((m.content for m in request.history or () if m.role == "user"), request.text)
    digest = hashlib.sha256()
    for part in (request.caller.sender_id, request.instructions, first):
        digest.update(len(part).to_bytes(8, "big") + part.encode("utf-8", "replace"))
    return f"v1-{digest.hexdigest()[:32]}"


def _with_results(log: Sequence[Message], end: int) -> int:
    """Return the position after the results of Weft's own tools that were called together with the app's."""
    calls = {call.id for call in log[end - 1].tool_calls} if end else set()
    while end < len(log) and log[end].role == "tool" and log[end].tool_call_id in calls:
        end += 1
    return end


class _Places:
    """Where the messages of a log are, so that each message of an app is looked up and not searched for.

    Calls and results are known by their ids, other messages by their text.
    """

    def __init__(self, log: Sequence[Message]) -> None:
        self._calls = [frozenset(call.id for call in message.tool_calls) for message in log]
        self._places: dict[tuple[str, str], list[int]] = {}
        for at, message in enumerate(log):
            for key in _keys(message):
                self._places.setdefault(key, []).append(at)

    def after(self, message: Message, start: int) -> int | None:
        """Return the position after the first equal message of the log from `start` on, or None."""
        places = self._places.get(_keys(message)[0], [])
        first = bisect_left(places, start)
        if not message.tool_calls:
            return places[first] + 1 if first < len(places) else None
        wanted = {call.id for call in message.tool_calls}
        candidates = places[first : first + _MOST_CANDIDATES]
        return next((at + 1 for at in candidates if wanted <= self._calls[at]), None)


def _keys(message: Message) -> list[tuple[str, str]]:
    """Return what a message is known by: its text or, as often as it has calls, the id of one."""
    if message.role == "tool":
        return [("tool", str(message.tool_call_id))]
    if message.tool_calls:
        return [(f"{message.role} calls", call_id) for call_id in {call.id for call in message.tool_calls}]
    return [(message.role, message.content.strip())]
