"""What lasts, as the layers of a context read it: logged messages, facts, summaries, tasks, blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from weft.types.message import Message


@dataclass(frozen=True, slots=True)
class Entry:
    """A logged message with its price, counted when it was written."""

    message: Message
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Tail:
    """The newest part of a conversation, oldest first, and how much lies before it."""

    entries: Sequence[Entry] = ()
    messages_before: int = 0
    tokens_before: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One thing known about a person."""

    key: str
    value: str


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
