"""What a database must offer as a whole.

`weft.memory.base` has `Store`, which adds memory and recall to a backend.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from weft.store.base import (
    Activity,
    Archive,
    Blocks,
    Epochs,
    LineIndex,
    MessageLog,
    Recall,
    Sessions,
    Turns,
)
from weft.store.blocks import BlockRows, MaskedBlock
from weft.store.indexes import SearchIndex, VectorIndex
from weft.store.people import (
    Auth,
    FactReader,
    Facts,
    InstructionReader,
    Instructions,
    Mailbox,
    People,
    Streams,
    Summaries,
    SummaryReader,
    TaskReader,
    Tasks,
)
from weft.types.memory import Remembered

BackupProgress = Callable[[int, int], None]
"""A function that is called from time to time with the pages copied, and the number of all pages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupStatus:
    """The newest backup, if one was made, and whether there is anything to lose."""

    at: datetime | None
    path: str
    has_messages: bool


class ContextStore(Protocol):
    """The part of a store from which a context is built."""

    @property
    def messages(self) -> MessageLog: ...

    @property
    def facts(self) -> FactReader: ...

    @property
    def instructions(self) -> InstructionReader: ...

    @property
    def summaries(self) -> SummaryReader: ...

    @property
    def tasks(self) -> TaskReader: ...

    @property
    def recall(self) -> Recall: ...

    @property
    def memory(self) -> Blocks: ...

    @property
    def epochs(self) -> Epochs | None:
        """Return where epochs are stored. Without it every request is built anew."""


class Lasting(Protocol):
    """What a backend and a store have in common: one attribute for each thing that lasts."""

    sessions: Sessions
    messages: MessageLog
    turns: Turns
    epochs: Epochs
    people: People
    facts: Facts
    instructions: Instructions
    summaries: Summaries
    tasks: Tasks
    mailbox: Mailbox
    streams: Streams
    auth: Auth
    activity: Activity

    def check_file(self) -> None:
        """Raise LostFile if the file of the store was deleted or replaced since it was opened."""

    async def check(self) -> list[str]:
        """Return the problems of the database; none, if all is well."""

    async def backup(self, path: str | Path, *, progress: BackupProgress | None = None) -> int:
        """Copy everything to a new file while others write, and check the copy. Returns its size in bytes.

        `progress` is called from another thread with the pages copied and the pages in all.

        Raises:
            ConfigError: there is a file at that path already.
            StoreError: the copy could not be made, or did not pass the check.
        """

    async def backup_status(self) -> BackupStatus:
        """Return when and where the newest backup was made, and whether there is anything to lose."""

    async def export(self, folder: str | Path) -> dict[str, int]:
        """Write everything, as it is at one moment, into a new folder. Returns the rows of each table.

        Raises:
            StoreError: the folder is not empty, or it cannot be written to.
        """

    async def restore_export(self, folder: str | Path) -> dict[str, int]:
        """Read an exported folder into this store, which must be empty: all of it, or nothing.

        Raises:
            StoreError: the store is not empty, or the folder is damaged; the message names the line.
        """

    async def close(self) -> None: ...


class Backend(Lasting, Protocol):
    """The contract of a database. A store adds memory and recall to it."""

    blocks: BlockRows
    archive: Archive
    search: SearchIndex
    lines: LineIndex
    vectors: VectorIndex

    async def list_remembered(self) -> Sequence[Remembered]:
        """Return all blocks, facts, instructions, notes and summaries of everyone, for an audit."""

    async def begin_purge(self, text: str) -> None:
        """Guard a text: from now on no writer, in whatever process, can store it again for a day."""

    async def purge(self, text: str, blocks: Sequence[MaskedBlock]) -> int:
        """Overwrite a text everywhere, and replace the blocks. Returns the number of places.

        Raises:
            StoreError: a block was changed meanwhile; nothing was overwritten.
        """
