"""The backend over one SQLite file."""

from __future__ import annotations

from collections.abc import Sequence

from weft.store.sqlite.activity import SqliteActivity
from weft.store.sqlite.archive import SqliteArchive
from weft.store.sqlite.auth import SqliteAuth
from weft.store.sqlite.backup import SqliteBackups
from weft.store.sqlite.blocks import SqliteBlocks
from weft.store.sqlite.database import Database, problems
from weft.store.sqlite.dump import SqliteDump
from weft.store.sqlite.facts import SqliteFacts
from weft.store.sqlite.mailbox import SqliteMailbox
from weft.store.sqlite.messages import SqliteMessages
from weft.store.sqlite.purge import SqlitePurge
from weft.store.sqlite.remembered import SqliteRemembered
from weft.store.sqlite.schema import Table
from weft.store.sqlite.search import SqliteSearch
from weft.store.sqlite.sessions import SqliteSessions
from weft.store.sqlite.streams import SqliteStreams
from weft.store.sqlite.summaries import SqliteSummaries
from weft.store.sqlite.tables import TABLES
from weft.store.sqlite.tasks import SqliteTasks
from weft.store.sqlite.turns import SqliteTurns
from weft.store.sqlite.vectors import SqliteVectors


class SqliteBackend:
    """The parts of one open file. They share one writer, so that writes happen in order."""

    def __init__(self, path: str, tables: Sequence[Table] = TABLES) -> None:
        self.database = Database(path, tables)
        self.sessions = SqliteSessions(self.database)
        self.messages = SqliteMessages(self.database)
        self.facts = SqliteFacts(self.database)
        self.summaries = SqliteSummaries(self.database)
        self.tasks = SqliteTasks(self.database)
        self.archive = SqliteArchive(self.database)
        self.blocks = SqliteBlocks(self.database)
        self.search = SqliteSearch(self.database)
        self.vectors = SqliteVectors(self.database)
        self.turns = SqliteTurns(self.database)
        self.mailbox = SqliteMailbox(self.database)
        self.streams = SqliteStreams(self.database)
        self.activity = SqliteActivity(self.database)
        self.auth = SqliteAuth(self.database)

        dump, backups = SqliteDump(self.database), SqliteBackups(self.database)
        self.export, self.restore_export = dump.export, dump.restore
        self.backup, self.backup_status = backups.make, backups.status
        self.remembered = SqliteRemembered(self.database).all
        self.purge = SqlitePurge(self.database).purge
        self.close = self.database.close

    async def check(self) -> list[str]:
        return await self.database.read(problems)
