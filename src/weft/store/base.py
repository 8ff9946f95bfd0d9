"""What a store must be able to do, as the layers above it see it.

Small protocols, one for each thing that lasts: a layer takes the one it needs and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from weft.tokens import Counter
from weft.types.memory import (
    ActivityEntry,
    ArchivalEntry,
    BlockInfo,
    BlockVersion,
    Fact,
    Permission,
    RenderedBlock,
    SharedBlock,
    Summary,
    Task,
)
from weft.types.message import Message
from weft.types.receipt import Receipt
from weft.types.search import Candidate, Recalled, SearchContentType
from weft.types.session import Fold, OpenTurn, Session, SessionRule, Tail


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Whose things may be found: an agent's or a sender's own, blocks shared with it, or everyone's."""

    owner: str = ""
    everyone: bool = False
    without_session: str = ""


class Update(NamedTuple):
    """A change as it is stored: its number, its content, and the document's state it was made on."""

    seq: int
    blob: bytes
    before: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """The stored content of a block: a snapshot of all changes up to `seq`, and those after it."""

    snapshot: bytes | None = None
    seq: int = 0
    updates: tuple[Update, ...] = ()

    @property
    def newest(self) -> int:
        return self.updates[-1].seq if self.updates else self.seq


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change to record, with the document's state before and after it."""

    blob: bytes
    before: bytes
    after: bytes
    author: str = ""
    kind: str = "edit"
    undoes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskedBlock:
    """All changes of a block up to `seq`, with a text in them made unreadable.

    Where no change held the text whole, only the newest state can be kept: `start_again` is that point.
    """

    block_id: str
    seq: int
    snapshot: bytes
    rendered: str
    start_again: bytes | None = None


@dataclass(frozen=True, slots=True)
class Moment:
    """A block while nobody else can write it: what was changed since, and all that came before."""

    others: Sequence[Update]
    history: Callable[[], Sequence[BlockVersion]]
    states: Callable[[int], tuple[bytes, bytes] | None]


Merge = Callable[[Moment], Change | None]
"""Merges what was changed since and says what to record on top, if anything. It may be asked twice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupStatus:
    """The newest backup, if one was made, and whether there is anything to lose."""

    at: datetime | None
    path: str
    has_messages: bool


class MessageLog(Protocol):
    """Conversations: append-only, each message counted once when it is written."""

    async def append(self, session_id: str, *messages: Message) -> None: ...

    async def newest(self, session_id: str, n: int) -> list[Message]: ...

    async def all(self, session_id: str) -> list[Message]: ...

    async def tail(
        self,
        session_id: str,
        counter: Counter,
        *,
        max_tokens: int | None,
        max_messages: int | None,
        after: int = 0,
    ) -> Tail:
        """The newest entries, as many as could matter: up to and including the one that passes a limit.

        Messages up to the number `after` are folded into a summary, and left out.
        """
        ...

    async def between(self, session_id: str, first: int, last: int) -> list[Message]:
        """Messages by their numbers, counted from 1, both included."""
        ...

    async def fold(self, session_id: str) -> Fold | None:
        """The newest summary of the beginning of a conversation."""
        ...

    async def add_fold(self, session_id: str, fold: Fold) -> None: ...


class Sessions(Protocol):
    """Which conversation a message belongs to."""

    async def get(self, session_id: str) -> Session: ...

    async def find(self, session_id: str) -> Session | None: ...

    async def close_idle(self, session_id: str, before: float) -> bool: ...

    async def find_either(
        self, name: str, channel: str, sender: str, *, rule: SessionRule = ...
    ) -> tuple[Session | None, Session | None]:
        """The session that has this name as its id, and the one that a conversation of this name is in."""
        ...

    async def find_open(
        self, channel: str, conversation: str, sender: str, *, rule: SessionRule = ...
    ) -> Session | None: ...

    async def list(self, *, limit: int = ...) -> Sequence[Session]: ...

    async def reopen(self, session_id: str, *, rule: SessionRule = ...) -> Session: ...

    async def new(
        self, channel: str, conversation: str, sender: str, *, agent_id: str = "", rule: SessionRule = ...
    ) -> Session: ...

    async def find_or_create(
        self, channel: str, conversation: str, sender: str, *, agent_id: str = "", rule: SessionRule = ...
    ) -> Session: ...

    async def close(self, session_id: str) -> None: ...

    async def unlearned(self, before: float, *, limit: int = 20) -> Sequence[Session]: ...


class Turns(Protocol):
    """What happens between a message and its answer. `finish` and `fail` raise if the turn has ended."""

    async def begin(
        self, session_id: str, text: str, *, inbox_id: str = "", is_known: bool = False
    ) -> str: ...

    async def step(self, turn_id: str, *messages: Message, inbox_ids: Sequence[str] = ()) -> None: ...

    async def finish(self, turn_id: str, receipt: Receipt, *messages: Message, reply: str = "") -> None: ...

    async def fail(self, turn_id: str, error: str, *messages: Message, reply: str = "") -> None: ...

    async def interrupted(self, session_id: str | None = None) -> Sequence[OpenTurn]: ...

    async def settle(self, turn_id: str, *messages: Message, reply: str = "") -> bool: ...

    async def list(self, session_id: str, *, limit: int = 100) -> Sequence[str]: ...

    async def ratio(self, model: str) -> float | None: ...

    async def find(self, turn_id: str) -> Receipt | None: ...

    async def keep_result(self, session_id: str, tool: str, content: str) -> str: ...

    async def read_result(
        self, session_id: str, result_id: str, offset: int, length: int
    ) -> tuple[str, int]: ...


class Facts(Protocol):
    async def list(self, sender: str) -> Sequence[Fact]: ...


class Summaries(Protocol):
    async def recent(self, channel: str, sender: str, limit: int = 3) -> Sequence[Summary]: ...


class Tasks(Protocol):
    async def list(self, sender: str) -> Sequence[Task]: ...


class Recall(Protocol):
    async def recall(self, query: str, *, sender: str, session_id: str, limit: int) -> Sequence[Recalled]:
        """Lines of the sender's other conversations that bear on the query, best first."""
        ...


class Blocks(Protocol):
    async def rendered_blocks(
        self, agent_id: str, *, named: Collection[str] | None = None
    ) -> Sequence[RenderedBlock]:
        """Every block the agent may read, its own before those shared with it.

        Where `named` is given, only those that every turn shows (core, and pinned working ones) and those of
        these ids: what is not shown need not be read.
        """
        ...


class BlockRows(Protocol):
    """Blocks as a store keeps them: what they are, and the chain of their changes."""

    async def create(self, info: BlockInfo, first: Change) -> str: ...

    async def find(self, agent_id: str, label: str) -> BlockInfo | None: ...

    async def list(self, agent_id: str) -> Sequence[BlockInfo]: ...

    async def everyone(self) -> Sequence[BlockInfo]: ...

    async def update(self, block_id: str, changes: Mapping[str, Any]) -> None:
        """Change some of what a block is, and nothing else of it."""
        ...

    async def delete(self, block_id: str) -> None: ...

    async def stale(self, agent_id: str | None) -> Sequence[BlockInfo]:
        """Blocks that changed since their text was kept, of those an agent may read, or of everyone."""
        ...

    async def keep_rendered(self, info: BlockInfo, rendered: str, version: int) -> None:
        """Keep the text of a block at a version, unless the block became another one meanwhile."""
        ...

    async def rendered_blocks(
        self, agent_id: str, *, named: Collection[str] | None = None
    ) -> tuple[Sequence[RenderedBlock], Sequence[BlockInfo]]:
        """The same, and which blocks of the agent changed since their text was kept."""
        ...

    async def chain(self, block_id: str) -> Chain: ...

    async def since(self, block_id: str, seq: int) -> Sequence[Update]: ...

    async def record(self, block_id: str, change: Change) -> tuple[int, int]:
        """Keep a change as it is; its number, and that of the change before it."""
        ...

    async def merge(self, block_id: str, since: int, merge: Merge) -> int:
        """Keep a change that is made on top of everything, while nobody else can; its number."""
        ...

    async def keep_snapshot(self, info: BlockInfo, seq: int, blob: bytes) -> None: ...

    async def history(self, block_id: str) -> Sequence[BlockVersion]: ...

    async def states(self, block_id: str, seq: int) -> tuple[bytes, bytes] | None: ...

    async def share(self, block_id: str, agent_id: str, permission: Permission) -> None: ...

    async def unshare(self, block_id: str, agent_id: str) -> bool: ...

    async def shared_with(self, agent_id: str) -> Sequence[SharedBlock]: ...


class Archive(Protocol):
    """Notes that are searched for, never shown unasked."""

    async def insert(self, agent_id: str, content: str, metadata: Mapping[str, Any] | None = None) -> str: ...

    async def list(self, ids: Sequence[str]) -> Mapping[str, ArchivalEntry]: ...

    async def delete(self, entry_id: str) -> bool: ...


class SearchIndex(Protocol):
    """Finds candidates by their words, among what their owner may find."""

    async def candidates(
        self, query: str, scope: Scope, *, sources: Sequence[SearchContentType], limit: int
    ) -> Sequence[Candidate]: ...


class VectorIndex(Protocol):
    """Finds candidates by their meaning. Vectors come from above; here they are bytes of 32-bit floats."""

    async def missing(self, embedder: str, limit: int) -> Sequence[tuple[int, str]]: ...

    async def keep(self, embedder: str, vectors: Sequence[tuple[int, bytes]]) -> None: ...

    async def nearest(
        self,
        vector: bytes,
        scope: Scope,
        *,
        sources: Sequence[SearchContentType],
        limit: int,
        also: Sequence[Candidate] = (),
    ) -> Sequence[Candidate]: ...


class Activity(Protocol):
    async def recent(self, agent_id: str, *, since: datetime, limit: int) -> Sequence[ActivityEntry]:
        """What happened since then, newest last."""
        ...


class Store(Protocol):
    """Everything that lasts, together."""

    @property
    def messages(self) -> MessageLog: ...

    @property
    def facts(self) -> Facts: ...

    @property
    def summaries(self) -> Summaries: ...

    @property
    def tasks(self) -> Tasks: ...

    @property
    def recall(self) -> Recall: ...

    @property
    def memory(self) -> Blocks: ...
