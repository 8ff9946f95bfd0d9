"""What lasts, as the layers of a context read it: logged messages, facts, summaries, tasks, blocks."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Literal

from weft.types.message import Message
from weft.types.post import Inbound, Outbound

_MARK = re.compile(r"\{(channel|conversation|sender)\}")


@dataclass(frozen=True, slots=True)
class Entry:
    """A logged message with its price, counted when it was written."""

    message: Message
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Tail:
    """The newest part of a conversation, oldest first, and how much lies before it.

    Where messages are folded into a summary, `tokens_before` is what lies between them and these.
    """

    entries: Sequence[Entry] = ()
    messages_before: int = 0
    tokens_before: int = 0
    messages_folded: int = 0
    tokens_folded: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """A summary that stands for the messages from the first to the last of it. The log keeps them all."""

    first: int = 1
    last: int
    text: str
    at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One conversation: who speaks with which agent, where, and since when."""

    id: str
    channel: str = ""
    conversation: str = ""
    sender: str = ""
    agent_id: str = ""
    created_at: datetime | None = None
    active_at: datetime | None = None
    closed_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRule:
    """What makes two messages belong to one session, how long it waits, and what it is called.

    `ignore` names the part of (channel, conversation, sender) that does not count.
    """

    ignore: Literal["", "conversation", "sender"] = ""
    idle_minutes: float | None = None
    id: str = ""

    def key(self, channel: str, conversation: str, sender: str) -> tuple[str, str, str]:
        if self.ignore == "conversation":
            return channel, "", sender
        return (channel, conversation, "") if self.ignore == "sender" else (channel, conversation, sender)

    def goes_on(self, session: Session, now: datetime) -> bool:
        """Whether a session is still the one to speak in: open, and not idle for too long."""
        if session.closed_at is not None:
            return False
        if self.idle_minutes is None or session.active_at is None:
            return True
        return now - session.active_at <= timedelta(minutes=self.idle_minutes)

    def id_for(self, channel: str, conversation: str, sender: str) -> str:
        """The id this rule gives, such as `{channel}_{conversation}`, or an empty one."""
        parts = {"channel": channel, "conversation": conversation, "sender": sender}
        return _MARK.sub(lambda mark: parts[mark[1]], self.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One thing known about a person. One that has ended was replaced or forgotten."""

    key: str
    value: str
    created_at: datetime | None = None
    ended_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What an earlier conversation was about."""

    text: str
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Something to do for a person at a time."""

    id: str
    text: str
    due: datetime | None = None
    repeat: str = "once"
    action: str = "reminder"
    zone: str = "UTC"
    channel: str = ""
    conversation: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """A line of another conversation that bears on this message."""

    text: str
    speaker: str
    timestamp: datetime | None = None
    score: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityEntry:
    """Something that happened lately. `agent` is empty for the system's own events."""

    at: datetime
    text: str
    agent: str = ""


class BlockType(StrEnum):
    """What a memory block is for, and so when it is shown."""

    CORE = "core"
    WORKING = "working"
    ARCHIVAL = "archival"
    LOG = "log"


class Permission(StrEnum):
    """What an agent may do with a block; the values are the labels shown to the model."""

    READ_ONLY = "ReadOnly"
    PARTNER = "Partner"
    HUMAN = "Human"
    APPEND = "Append"
    READ_WRITE = "ReadWrite"
    ADMIN = "Admin"


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedBlock:
    """A memory block as text, ready to be shown."""

    id: str
    label: str
    content: str
    description: str = ""
    block_type: BlockType = BlockType.WORKING
    permission: Permission = Permission.READ_WRITE
    pinned: bool = False
    shared_from: str = ""
    schema: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_always_shown(self) -> bool:
        """Whether every turn shows it; others are shown in a turn that names them."""
        return self.block_type == BlockType.CORE or (self.block_type == BlockType.WORKING and self.pinned)


class SearchMode(StrEnum):
    """How a search looks: by words, by meaning, by both, or by what is there."""

    FTS = "fts"
    VECTOR = "vector"
    HYBRID = "hybrid"
    AUTO = "auto"


class SearchContentType(StrEnum):
    """What a search looks at."""

    MESSAGES = "message"
    BLOCKS = "block"
    ARCHIVAL = "archival"


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions:
    """How, where and how much to search."""

    mode: SearchMode = SearchMode.AUTO
    content_types: tuple[SearchContentType, ...] = (
        SearchContentType.MESSAGES,
        SearchContentType.BLOCKS,
        SearchContentType.ARCHIVAL,
    )
    limit: int = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """Something the store found, before it is ranked: where it is from, and how well its words match."""

    source: SearchContentType
    id: str
    content: str
    words: float = 0.0
    meaning: float | None = None
    at: datetime | None = None
    speaker: str = ""
    session_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySearchResult:
    """One hit. Larger scores are better; `parts` says what the score is made of, `mode` how it was found."""

    source: SearchContentType
    id: str
    content: str
    snippet: str
    score: float
    parts: Mapping[str, float] = field(default_factory=dict)
    mode: SearchMode = SearchMode.FTS


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivalEntry:
    """A note in the archive. The score is there when it was searched for."""

    id: str
    content: str
    metadata: Mapping[str, Any] | None = None
    created_at: datetime | None = None
    score: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockInfo:
    """All about a block but its content. `version` is that of its newest change; when something in all of
    its changes was made unreadable, `epoch` went up."""

    id: str
    agent_id: str
    label: str
    description: str = ""
    block_type: BlockType = BlockType.WORKING
    permission: Permission = Permission.READ_WRITE
    char_limit: int = 5000
    pinned: bool = False
    schema: Mapping[str, Any] = field(default_factory=dict)
    version: int = 0
    updated_at: datetime | None = None
    epoch: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockVersion:
    """One recorded change of a block: when, by whom, and whether it took an earlier one back."""

    version: int
    kind: Literal["edit", "undo", "redo"]
    author: str
    at: datetime | None = None
    undoes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedBlock:
    """A block that another agent shares, and what may be done with it."""

    owner: str
    label: str
    permission: Permission
    block_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """A text that is remembered, wherever it is kept: what an audit looks at.

    `owner` is the agent, or the person of a fact; `name` is a block's label, a fact's key or a note's id.
    `origin` is where the text came from: the operator's own words are trusted, all others are not.
    """

    kind: Literal["block", "fact", "note", "summary"]
    owner: str
    name: str
    text: str
    origin: str = "agent"
    limit: int | None = None
    at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTurn:
    """A message whose turn did not end: its process is gone. `steps` is what was done for it by then.

    One that `is_known` was in the log before the turn began.
    """

    id: str
    session_id: str
    text: str
    origin: str = "user"
    is_known: bool = False
    at: datetime | None = None
    steps: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A message that was taken over from a channel, and its number here."""

    id: str
    message: Inbound


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """A message that must go out, its number here, and how often that was tried, this time included."""

    id: str
    message: Outbound
    attempts: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Denial:
    """Somebody who was turned away: how often, why, and when they last tried. What they said is not kept."""

    channel: str
    sender: str
    why: str
    count: int
    last_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Paired:
    """Somebody who may come in, on one channel."""

    channel: str
    sender: str
