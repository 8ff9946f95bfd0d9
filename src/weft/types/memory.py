"""Facts, summaries, tasks, activity, memory blocks and archived notes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One fact about a person. A fact that has ended was replaced or forgotten.

    `asked_by` names the text of strangers that may be behind it.
    """

    key: str
    value: str
    created_at: datetime | None = None
    ended_at: datetime | None = None
    asked_by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A summary of an earlier conversation. `origin` is the least trusted of what it was made from."""

    text: str
    created_at: datetime | None = None
    origin: str = "agent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Something to do for a person at a time, in the place it came from."""

    id: str
    text: str
    due: datetime | None = None
    repeat: str = "once"
    action: str = "reminder"
    zone: str = "UTC"
    channel: str = ""
    conversation: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityEntry:
    """Something that happened. `agent` is empty for the system's own events."""

    at: datetime
    text: str
    agent: str = ""


class BlockType(StrEnum):
    """The purpose of a memory block, which decides when it is shown."""

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
    """A memory block as text, ready to be shown. `version` is what a write takes as its `base`."""

    id: str
    label: str
    content: str
    description: str = ""
    block_type: BlockType = BlockType.WORKING
    permission: Permission = Permission.READ_WRITE
    pinned: bool = False
    shared_from: str = ""
    schema: Mapping[str, Any] = field(default_factory=dict)
    version: str = ""

    @property
    def is_always_shown(self) -> bool:
        """Whether every turn shows the block; others are shown in a turn that names them."""
        return self.block_type == BlockType.CORE or (self.block_type == BlockType.WORKING and self.pinned)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivalEntry:
    """A note in the archive. The score is set by a search."""

    id: str
    content: str
    metadata: Mapping[str, Any] | None = None
    created_at: datetime | None = None
    score: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockInfo:
    """Everything about a block except its content.

    `version` is the number of its newest change. `epoch` goes up when a text is redacted from all changes.
    """

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
    """One recorded change of a block: its time, its author, and the change that it undoes, if any.

    An `overwrite` replaced the whole text without regard to what others had written.
    """

    version: int
    kind: Literal["edit", "overwrite", "undo", "redo"]
    author: str
    at: datetime | None = None
    undoes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedBlock:
    """A block that another agent shares, with the permission."""

    owner: str
    label: str
    permission: Permission
    block_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A block of an agent's own that `agent_id` may use, with the permission."""

    label: str
    agent_id: str
    permission: Permission


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """A remembered text, wherever it is stored, for an audit.

    `owner` is the agent, or the person of a fact or an instruction; `name` is a block's label, a fact's key,
    or the id of another item.
    `origin` is where the text came from: only the operator's own words are trusted. `asked_by` names the text
    of strangers that may be behind it. A task is among them only if it has that.
    """

    kind: Literal["block", "fact", "instruction", "note", "summary", "task"]
    owner: str
    name: str
    text: str
    origin: str = "agent"
    limit: int | None = None
    at: datetime | None = None
    asked_by: str = ""
