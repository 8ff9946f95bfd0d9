"""What a database must offer as a whole.

`weft.memory.base` has `Store`, which adds memory and recall to a backend.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from weft.store.base import (
    Activity,
    Archive,
    BackupProgress,
    BackupStatus,
    BlockRows,
    Blocks,
    MaskedBlock,
    MessageLog,
    Recall,
    SearchIndex,
    Sessions,
    Turns,
    VectorIndex,
)
from weft.store.people import (
    Auth,
    FactReader,
    Facts,
    Mailbox,
    Streams,
    Summaries,
    SummaryReader,
    TaskReader,
    Tasks,
)
from weft.types.memory import Remembered


class ContextStore(Protocol):
    """The part of a store from which a context is built."""

    @property
    def messages(self) -> MessageLog: ...

    @property
    def facts(self) -> FactReader: ...

    @property
    def summaries(self) -> SummaryReader: ...

    @property
    def tasks(self) -> TaskReader: ...

    @property
    def recall(self) -> Recall: ...

    @property
    def memory(self) -> Blocks: ...


class Lasting(Protocol):
    """What a backend and a store have in common: one attribute for each thing that lasts."""

    @property
    def sessions(self) -> Sessions: ...

    @property
    def messages(self) -> MessageLog: ...

    @property
    def turns(self) -> Turns: ...

    @property
    def facts(self) -> Facts: ...

    @property
    def summaries(self) -> Summaries: ...

    @property
    def tasks(self) -> Tasks: ...

    @property
    def mailbox(self) -> Mailbox: ...

    @property
    def streams(self) -> Streams: ...

    @property
    def auth(self) -> Auth: ...

    @property
    def activity(self) -> Activity: ...

    async def check(self) -> list[str]:
        """Return what is wrong with the database; nothing, if all is well."""
        ...

    async def backup(self, path: str | Path, *, progress: BackupProgress | None = None) -> int:
        """Copy everything to a new file while others write, and check the copy. Returns its size in bytes.

        `progress` is called from another thread with the pages copied and the pages in all.

        Raises:
            ConfigError: there is something at that place already.
            StoreError: the copy could not be made, or did not pass the check.
        """
        ...

    async def backup_status(self) -> BackupStatus:
        """Return when and where the newest backup was made, and whether there is anything to lose."""
        ...

    async def export(self, folder: str | Path) -> dict[str, int]:
        """Write everything into a new folder that people can read. Returns the rows of each table."""
        ...

    async def restore_export(self, folder: str | Path) -> dict[str, int]:
        """Read an exported folder into this store, which must be empty: all of it, or nothing."""
        ...

    async def close(self) -> None: ...


class Backend(Lasting, Protocol):
    """What a database must offer, so that a store can be made of it."""

    @property
    def blocks(self) -> BlockRows: ...

    @property
    def archive(self) -> Archive: ...

    @property
    def search(self) -> SearchIndex: ...

    @property
    def vectors(self) -> VectorIndex: ...

    async def remembered(self) -> Sequence[Remembered]:
        """Return all blocks, facts, notes and summaries of everyone, for an audit."""
        ...

    async def purge(self, text: str, blocks: Sequence[MaskedBlock]) -> int:
        """Overwrite a text everywhere, and replace the blocks. Returns the number of places.

        Raises:
            StoreError: a block was changed meanwhile; nothing was overwritten.
        """
        ...
