"""Who is let in: paired people, and programs with a token. Secrets are stored as hashes only."""

from __future__ import annotations

import secrets
import time
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import apsw

from weft.errors import StoreError
from weft.store.sqlite.database import Database
from weft.types.delivery import Denial, Paired

CODE_MINUTES = 15
_CODE_LETTERS = "BCDFGHJKLMNPQRSTVWXZ23456789"
_CODE_LENGTH = 8


class SqliteAuth:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def offer_pairing(self, channel: str, sender: str) -> str:
        """Return a code that lets this person in once the owner confirms it. It replaces an earlier code."""
        code = "".join(secrets.choice(_CODE_LETTERS) for _ in range(_CODE_LENGTH))
        row = (channel, sender, _hash(code), time.time() + CODE_MINUTES * 60)
        query = "insert or replace into auth_codes(channel, sender, hash, ends_at) values(?, ?, ?, ?)"
        await self._database.write(lambda db: db.execute(query, row).get)
        return code

    async def confirm_pairing(self, code: str) -> Paired:
        """Pair the person who has this code.

        Raises:
            StoreError: nobody has this code, or it is too old.
        """

        def work(db: apsw.Connection) -> Paired:
            query = "delete from auth_codes where hash = ? returning channel, sender, ends_at"
            row: Any = db.execute(query, (_hash(code.strip().upper()),)).fetchone()
            if row is None or row[2] < time.time():
                raise StoreError("No one waits with this code: codes last 15 minutes, ask for a new one.")
            channel, sender, _ = row
            pairing = "insert or replace into auth_pairings(channel, sender, at) values(?, ?, ?)"
            db.execute(pairing, (channel, sender, time.time()))
            return Paired(channel=channel, sender=sender)

        return await self._database.write(work)

    async def is_paired(self, channel: str, sender: str) -> bool:
        query = "select exists(select 1 from auth_pairings where channel = ? and sender = ?)"
        return bool(await self._database.read(lambda db: db.execute(query, (channel, sender)).get))

    async def paired(self) -> list[Paired]:
        """Return all paired people, by channel."""
        query = "select channel, sender from auth_pairings order by 1, 2"
        rows = await self._database.read(lambda db: list(db.execute(query)))
        return [Paired(channel=channel, sender=sender) for channel, sender in rows]

    async def unpair(self, channel: str, sender: str) -> bool:
        """Revoke a pairing. Returns whether it existed."""

        def work(db: apsw.Connection) -> bool:
            db.execute("delete from auth_pairings where channel = ? and sender = ?", (channel, sender))
            return db.changes() > 0

        return await self._database.write(work)

    async def denied(self, *, limit: int = 100) -> list[Denial]:
        """Return the people who were refused, the one who tried last before the others."""
        query = (
            "select channel, sender, why, count(*), max(at) from denials group by channel, sender, why "
            "order by 5 desc limit ?"
        )
        rows: list[Any] = await self._database.read(lambda db: list(db.execute(query, (limit,))))
        return [
            Denial(
                channel=channel, sender=sender, why=why, count=count, last_at=datetime.fromtimestamp(at, UTC)
            )
            for channel, sender, why, count, at in rows
        ]

    async def new_token(self, name: str) -> str:
        """Make a token for a program, in place of the old token of that name. Only its hash is stored."""
        token = f"weft_{secrets.token_urlsafe(32)}"
        query = "insert or replace into auth_tokens(name, hash, at) values(?, ?, ?)"
        await self._database.write(lambda db: db.execute(query, (name, _hash(token), time.time())).get)
        return token

    async def whose_token(self, token: str) -> str | None:
        """Return the name of a token, or None. Hashes are compared, so timing reveals nothing."""
        query = "select name from auth_tokens where hash = ?"
        return await self._database.read(lambda db: db.execute(query, (_hash(token),)).get)

    async def end_token(self, name: str) -> bool:
        """Revoke a token. Returns whether it existed."""

        def work(db: apsw.Connection) -> bool:
            db.execute("delete from auth_tokens where name = ?", (name,))
            return db.changes() > 0

        return await self._database.write(work)


def _hash(secret: str) -> bytes:
    return sha256(secret.encode("utf-8", "surrogatepass")).digest()
