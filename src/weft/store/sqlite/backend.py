"""The backend over one SQLite file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from weft.store.backend import Backend
from weft.store.blocks import MaskedBlock
from weft.store.sqlite.activity import SqliteActivity
from weft.store.sqlite.archive import SqliteArchive
from weft.store.sqlite.auth import SqliteAuth
from weft.store.sqlite.backup import SqliteBackups
from weft.store.sqlite.blocks import SqliteBlocks
from weft.store.sqlite.connection import problems
from weft.store.sqlite.database import Database
from weft.store.sqlite.dump import export_tables, import_tables
from weft.store.sqlite.epochs import SqliteEpochs
from weft.store.sqlite.facts import SqliteFacts
from weft.store.sqlite.instructions import SqliteInstructions
from weft.store.sqlite.lines import SqliteLines
from weft.store.sqlite.mailbox import SqliteMailbox
from weft.store.sqlite.messages import SqliteMessages
from weft.store.sqlite.people import SqlitePeople
from weft.store.sqlite.purge import begin_purge, purge
from weft.store.sqlite.remembered import ALL_REMEMBERED
from weft.store.sqlite.schema import Table
from weft.store.sqlite.search import SqliteSearch
from weft.store.sqlite.sessions import SqliteSessions
from weft.store.sqlite.streams import SqliteStreams
from weft.store.sqlite.summaries import SqliteSummaries
from weft.store.sqlite.tables import TABLES
from weft.store.sqlite.tasks import SqliteTasks
from weft.store.sqlite.turns import SqliteTurns
from weft.store.sqlite.vectors import SqliteVectors
from weft.types.memory import Remembered


class SqliteBackend(SqliteBackups, Backend):
    """The parts of one open file. They share one writer, so that writes happen in order."""

    def __init__(self, path: str, tables: Sequence[Table] = TABLES) -> None:
        self.database = Database(path, tables)
        super().__init__(self.database)
        self._exported = [table for table in tables if table.exported]
        self.sessions = SqliteSessions(self.database)
        self.messages = SqliteMessages(self.database)
        self.people = SqlitePeople(self.database)
        self.facts = SqliteFacts(self.database)
        self.instructions = SqliteInstructions(self.database)
        self.summaries = SqliteSummaries(self.database)
        self.tasks = SqliteTasks(self.database)
        self.archive = SqliteArchive(self.database)
        self.blocks = SqliteBlocks(self.database)
        self.search = SqliteSearch(self.database)
        self.lines = SqliteLines(self.database)
        self.vectors = SqliteVectors(self.database)
        self.turns = SqliteTurns(self.database)
        self.epochs = SqliteEpochs(self.database)
        self.mailbox = SqliteMailbox(self.database)
        self.streams = SqliteStreams(self.database)
        self.activity = SqliteActivity(self.database)
        self.auth = SqliteAuth(self.database)

    def check_file(self) -> None:
        self.database.file.check()

    async def check(self) -> list[str]:
        return await self._read(problems)

    async def export(self, folder: str | Path) -> dict[str, int]:
        return await self._read(lambda db: export_tables(db, self._exported, Path(folder)))

    async def restore_export(self, folder: str | Path) -> dict[str, int]:
        return await self._write(lambda db: import_tables(db, self._exported, Path(folder)))

    async def list_remembered(self) -> list[Remembered]:
        return await self._fetch(Remembered, ALL_REMEMBERED)

    async def begin_purge(self, text: str) -> None:
        await self._write(lambda db: begin_purge(db, self.database.tables, text))

    async def purge(self, text: str, blocks: Sequence[MaskedBlock]) -> int:
        places = await self._write(lambda db: purge(db, self.database.tables, text, blocks))
        await self.database.compact()
        return places

    async def close(self) -> None:
        await self.database.close()
