"""Authentication: paired people, and programs with a token. Secrets are stored as hashes only."""

from __future__ import annotations

import secrets
import time
from hashlib import sha256
from typing import Any

import apsw

from weft.errors import UnknownName
from weft.store.sqlite.database import Repository
from weft.types.delivery import TOKEN_START, AccessToken, Denial, Paired
from weft.types.person import OWNER_NAME

CODE_MINUTES = 15
_CODE_LETTERS = "BCDFGHJKLMNPQRSTVWXZ23456789"
_CODE_LENGTH = 8


class SqliteAuth(Repository):
    async def offer_pairing(self, channel: str, sender: str) -> str:
        code = "".join(secrets.choice(_CODE_LETTERS) for _ in range(_CODE_LENGTH))
        query = "insert or replace into auth_codes(channel, sender, hash, ends_at) values(?, ?, ?, ?)"
        await self._execute(query, channel, sender, _hash(code), time.time() + CODE_MINUTES * 60)
        return code

    async def confirm_pairing(self, code: str) -> Paired:
        def work(db: apsw.Connection) -> Paired:
            query = "delete from auth_codes where hash = ? returning channel, sender, ends_at"
            row: Any = db.execute(query, (_hash(code.strip().upper()),)).fetchone()
            if row is None or row[2] < time.time():
                raise UnknownName("No one waits with this code: codes last 15 minutes, ask for a new one.")
            channel, sender, _ = row
            pairing = "insert or replace into auth_pairings(channel, sender, at) values(?, ?, ?)"
            db.execute(pairing, (channel, sender, time.time()))
            return Paired(channel=channel, sender=sender)

        return await self._write(work)

    async def is_paired(self, channel: str, sender: str) -> bool:
        query = "select exists(select 1 from auth_pairings where channel = ? and sender = ?)"
        return bool(await self._value(int, query, channel, sender))

    async def list_paired(self) -> list[Paired]:
        return await self._fetch(Paired, "select channel, sender from auth_pairings order by 1, 2")

    async def unpair(self, channel: str, sender: str) -> bool:
        query = "delete from auth_pairings where channel = ? and sender = ?"
        return await self._execute(query, channel, sender) > 0

    async def list_denied(self, *, limit: int = 100) -> list[Denial]:
        query = (
            "select channel, sender, why, count(*) as count, max(at) as last_at from denials "
            "group by channel, sender, why order by last_at desc limit ?"
        )
        return await self._fetch(Denial, query, limit)

    async def create_token(self, name: str, sender: str = OWNER_NAME) -> str:
        token = f"{TOKEN_START}{secrets.token_urlsafe(32)}"
        query = "insert or replace into auth_tokens(name, sender, hash, at) values(?, ?, ?, ?)"
        await self._execute(query, name, sender, _hash(token), time.time())
        return token

    async def find_token(self, token: str) -> tuple[str | None, bool]:
        query = "select (select sender from auth_tokens where hash = ?), exists(select 1 from auth_tokens)"
        [(sender, is_any)] = await self._rows(query, _hash(token))
        return sender, bool(is_any)

    async def list_tokens(self) -> list[AccessToken]:
        query = "select name, sender, at as created_at from auth_tokens order by sender, name"
        return await self._fetch(AccessToken, query)

    async def revoke_token(self, name: str) -> bool:
        return await self._execute("delete from auth_tokens where name = ?", name) > 0


def _hash(secret: str) -> bytes:
    """Hash a secret. Hashes are compared in its place, so timing reveals nothing."""
    return sha256(secret.encode("utf-8", "surrogatepass")).digest()
