"""The store of an assistant, opened when it is first needed: a plain question leaves no file behind."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from weft.memory.base import Store


class LazyStore:
    """A store that is opened once, at its first use. One that is not ours is not closed."""

    def __init__(
        self, path: Path | None, open_store: Callable[[], Awaitable[Store]], *, is_ours: bool = True
    ) -> None:
        self._path, self._open, self._opening = path, open_store, asyncio.Lock()
        self._is_ours = is_ours
        self._store: Store | None = None

    async def find(self) -> Store | None:
        """Return the store if its file exists."""
        if self._store is None and self._path is not None and not self._path.exists():
            return None
        return await self.get()

    async def get(self) -> Store:
        """Return the store. Its file is created if there is none."""
        async with self._opening:
            if self._store is None:
                self._store = await self._open()
            return self._store

    async def close(self) -> None:
        if self._store is not None and self._is_ours:
            await self._store.close()
