"""Vectors of new texts, made in the background: no answer waits for them."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

from weft.errors import WeftError
from weft.gateway.lazy_store import LazyStore
from weft.recall.meaning import Meaning

_BATCH = 8
"""How many texts are embedded at once. A search waits for one batch at most."""
_DELAY_SECONDS = 0.3
"""How long after an answer the work begins: a program that asks once and ends does not begin it."""
_LONGEST_REST = 2.0


class Indexing:
    """The work of giving vectors to texts that have none, at most once at a time.

    It stops when the program ends, and goes on there the next time. It rests as long as it works, so that it
    takes half of one core at most.
    """

    def __init__(self, store: LazyStore) -> None:
        self._store = store
        self._task: asyncio.Task[None] | None = None
        self._is_due = self._is_closed = False

    def begin(self) -> None:
        """Index in the background what is new. While that runs, it looks once more at its end."""
        self._is_due = True
        if not self._is_closed and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Stop. What was indexed stays."""
        self._is_closed = True
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        while self._is_due:
            self._is_due = False
            meaning = await self._meaning()
            if meaning is not None:
                await asyncio.sleep(_DELAY_SECONDS)
                await _catch_up(meaning)

    async def _meaning(self) -> Meaning | None:
        try:
            store = await self._store.find()
        except WeftError:
            return None  # a turn that needs the store says why it cannot be opened
        return None if store is None else store.meaning


async def _catch_up(meaning: Meaning) -> None:
    begun = time.monotonic()
    try:
        async for _ in meaning.catch_up(batch=_BATCH):
            await asyncio.sleep(min(time.monotonic() - begun, _LONGEST_REST))
            begun = time.monotonic()
    except WeftError as error:
        meaning.note_failure(str(error))
