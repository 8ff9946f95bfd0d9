"""Sessions, their logged messages, and turns that did not end."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from weft.types.message import Message

Summarizer = Callable[[str, Sequence[Message]], Awaitable[str]]
"""Writes one summary of an earlier summary, which may be empty, and of the messages after it."""

ONE_OFF = "ask"
"""The channel and the conversation of one-off questions, which are never learned from or recalled."""

IMPORTED = "import"
"""The channel of conversations that were read from files. No message comes from it: it binds nothing."""

_MARK = re.compile(r"\{(channel|conversation|sender)\}")


@dataclass(frozen=True, slots=True)
class Entry:
    """A logged message with its tokens, counted when it was written."""

    message: Message
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Tail:
    """The newest part of a conversation, oldest first, and how much lies before it.

    `tokens_before` does not count messages that are folded into a summary.
    """

    entries: Sequence[Entry] = ()
    messages_before: int = 0
    tokens_before: int = 0
    messages_folded: int = 0
    tokens_folded: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """A summary that stands for the messages from `first` to `last`. They all stay in the log.

    `outside_text` is the part of it that was made from text of strangers, which came from the places
    `outside`; `origin` is the least trusted of all that it covers. The tokens are those of the messages
    and of the summary; what making the summary cost is beside them. `removed_at` is when it was opened again.
    """

    first: int = 1
    last: int
    text: str
    strategy: str = "summarize"
    model: str = ""
    origin: str = "agent"
    outside: tuple[str, ...] = ()
    outside_text: str = ""
    tokens_before: int = 0
    tokens_after: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    at: datetime | None = None
    removed_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SideCall:
    """A request beside the answers: to fold, to classify or to learn. `error` says why it failed."""

    kind: str
    session_id: str = ""
    provider: str = ""
    model: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    written_tokens: int = 0
    error: str = ""
    at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One conversation of a person with an agent. Without a title of its own it has its first message's."""

    id: str
    channel: str = ""
    conversation: str = ""
    sender: str = ""
    agent_id: str = ""
    created_at: datetime | None = None
    active_at: datetime | None = None
    closed_at: datetime | None = None
    learn_tries: int = 0
    learned_to: int = 0
    title: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRule:
    """The rule by which messages belong to one session.

    `ignore` names the part of (channel, conversation, sender) that does not count. A session that was idle
    for `idle_minutes` is over. `id` is a pattern for the ids of sessions.
    """

    ignore: Literal["", "conversation", "sender"] = ""
    idle_minutes: float | None = None
    id: str = ""

    def key(self, channel: str, conversation: str, sender: str) -> tuple[str, str, str]:
        if self.ignore == "conversation":
            return channel, "", sender
        return (channel, conversation, "") if self.ignore == "sender" else (channel, conversation, sender)

    def goes_on(self, session: Session, now: datetime) -> bool:
        """Decide whether a session continues: it is open, and was not idle for too long."""
        if session.closed_at is not None:
            return False
        if self.idle_minutes is None or session.active_at is None:
            return True
        return now - session.active_at <= timedelta(minutes=self.idle_minutes)

    def id_for(self, channel: str, conversation: str, sender: str) -> str:
        """Fill in the pattern for ids, such as `{channel}_{conversation}`; empty if there is none."""
        parts = {"channel": channel, "conversation": conversation, "sender": sender}
        return _MARK.sub(lambda mark: parts[mark[1]], self.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnInfo:
    """A turn of a session, by its number from 1. `first` is the number of its message in the log, or 0."""

    id: str
    session_id: str
    number: int
    state: str
    at: datetime | None = None
    error: str = ""
    first: int = 0
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTurn:
    """A turn that did not end because its process is gone. `steps` is what it did by then.

    A message that `is_known` was in the log before the turn began.
    """

    id: str
    session_id: str
    text: str
    origin: str = "user"
    is_known: bool = False
    at: datetime | None = None
    outside: tuple[str, ...] = ()
    steps: tuple[Message, ...] = ()
