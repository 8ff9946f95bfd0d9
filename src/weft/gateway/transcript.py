"""Comparison of a transcript that an app sends with the messages that are stored.

An app that keeps its own conversation sends all of it with each request. Its session is identified by the
sender, the instructions and the first message of the user. Only new messages are added to the log.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from weft.types.message import Message
from weft.types.request import TurnRequest

COMPARED = 500
"""How many of the newest messages of a log are compared with a transcript."""


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
    position = 0
    for message in history:
        position = _after(log, message, position) or position
    asked = [at for at, message in enumerate(log) if message.role == "user" and message.origin == "user"]
    if not asked or asked[-1] < position or not _same(log[asked[-1]], exchange[0]):
        return Match()
    first = end = asked[-1] + 1
    count = 1
    for message in exchange[1:]:
        after = _after(log, message, end)
        if after is None:
            break
        count, end = count + 1, after
    return Match(count, tuple(log[first : _with_results(log, end)]))


def conversation_name(request: TurnRequest) -> str:
    """Return a name that stays the same while a conversation grows."""
    first = next((m.content for m in request.history or () if m.role == "user"), request.text)
    digest = hashlib.sha256()
    for part in (request.caller.sender_id, request.instructions, first):
        digest.update(len(part).to_bytes(8, "big") + part.encode("utf-8", "replace"))
    return f"v1-{digest.hexdigest()[:32]}"


def _after(log: Sequence[Message], message: Message, start: int) -> int | None:
    """Return the position after the first equal message of the log from `start` on, or None."""
    return next((at + 1 for at in range(start, len(log)) if _same(log[at], message)), None)


def _with_results(log: Sequence[Message], end: int) -> int:
    """Return the position after the results of Weft's own tools that were called together with the app's."""
    calls = {call.id for call in log[end - 1].tool_calls} if end else set()
    while end < len(log) and log[end].role == "tool" and log[end].tool_call_id in calls:
        end += 1
    return end


def _same(logged: Message, sent: Message) -> bool:
    """Compare a message of the log with one of an app: calls and results by their ids, others by text."""
    if logged.role != sent.role:
        return False
    if sent.role == "tool":
        return logged.tool_call_id == sent.tool_call_id
    if sent.tool_calls:
        return {call.id for call in sent.tool_calls} <= {call.id for call in logged.tool_calls}
    return not logged.tool_calls and logged.content.strip() == sent.content.strip()
