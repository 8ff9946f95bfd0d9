"""The contract of a database for memory blocks: their settings, and the chain of their changes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from weft.types.memory import BlockInfo, BlockVersion, Permission, RenderedBlock, Share, SharedBlock
from weft.types.purge_guard import PurgeGuard


class Update(NamedTuple):
    """A stored change: its number, its content, and the state of the document that it was made on."""

    seq: int
    blob: bytes
    before: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """The stored content of a block: a snapshot of all changes up to `seq`, and the changes after it."""

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


@dataclass(frozen=True, slots=True)
class NewBlock:
    """A block to store: its settings, its first change, and its text."""

    info: BlockInfo
    first: Change
    rendered: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskedBlock:
    """A block whose changes up to `seq` were made free of a text.

    Where no single change holds the whole text, only the newest state can stay: `start_again` is that state.
    """

    block_id: str
    seq: int
    snapshot: bytes
    rendered: str
    start_again: bytes | None = None


@dataclass(frozen=True, slots=True)
class Moment:
    """A block while its writer holds the lock: the changes of others since, and the history."""

    others: Sequence[Update]
    history: Callable[[], Sequence[BlockVersion]]
    states: Callable[[int], tuple[bytes, bytes] | None]
    guards: Callable[[], Sequence[PurgeGuard]]


Merge = Callable[[Moment], Change | None]
"""A function that merges the changes of others and returns the change to record on top, if any.

It may be called twice.
"""


class BlockRows(Protocol):
    """Blocks as they are stored: their settings, and the chain of their changes."""

    async def create(self, info: BlockInfo, first: Change, rendered: str | None = None) -> str:
        """Store a new block, with its text where that is known. Returns its id.

        Raises:
            StoreError: the agent has a block of that label.
        """

    async def create_missing(
        self, blocks: Sequence[NewBlock], shared: BlockInfo | None, agent_id: str
    ) -> None:
        """Store the blocks whose labels are free, and let an agent read a shared one, in one transaction."""

    async def find(self, agent_id: str, label: str) -> BlockInfo | None: ...

    async def list(self, agent_id: str) -> Sequence[BlockInfo]:
        """Return an agent's own blocks, oldest first."""

    async def page(self, agent_id: str, *, limit: int, offset: int) -> tuple[Sequence[BlockInfo], int]:
        """Return a page of an agent's own blocks, by their labels, and the number of all."""

    async def list_all(self) -> Sequence[BlockInfo]:
        """Return the blocks of all agents."""

    async def list_stale(self, agent_id: str | None) -> Sequence[BlockInfo]:
        """Return blocks that changed since their text was stored: those an agent may read, or all."""

    async def list_shares(self, agent_id: str) -> Sequence[Share]:
        """Return with whom an agent's own blocks are shared."""

    async def list_shared(self, agent_id: str) -> Sequence[SharedBlock]:
        """Return the blocks that others share with an agent."""

    async def update(self, block_id: str, changes: Mapping[str, Any]) -> None:
        """Change some settings of a block. Its text must be rendered again."""

    async def delete(self, block_id: str) -> None: ...

    async def save_rendered(self, info: BlockInfo, rendered: str, version: int) -> None:
        """Store and index the text of a block at a version.

        Nothing is stored if a newer text is there, or if the block has a new schema or was masked meanwhile.
        """

    async def rendered_blocks(
        self, agent_id: str, *, named: Collection[str] | None = None
    ) -> tuple[Sequence[RenderedBlock], Sequence[BlockInfo]]:
        """Return blocks as text, and those blocks of the agent that changed since their text was stored."""

    async def get_chain(self, block_id: str) -> Chain: ...

    async def list_since(self, block_id: str, seq: int) -> Sequence[Update]:
        """Return the changes after the one with this number."""

    async def merge(self, block_id: str, since: int, merge: Merge) -> int:
        """Store a change that `merge` makes on top of all others, under the lock. Returns its number."""

    async def save_snapshot(self, info: BlockInfo, seq: int, blob: bytes) -> None:
        """Store a snapshot of all changes up to one. The changes stay for the history."""

    async def history(self, block_id: str) -> Sequence[BlockVersion]:
        """Return all changes, oldest first."""

    async def states(self, block_id: str, seq: int) -> tuple[bytes, bytes] | None:
        """Return the state of the document before and after one change."""

    async def share(self, block_id: str, agent_id: str, permission: Permission) -> None: ...

    async def unshare(self, block_id: str, agent_id: str) -> bool:
        """End a share. Returns whether it existed."""
