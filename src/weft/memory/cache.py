"""Documents in memory: loaded when first used, merged with what others wrote, written through at once.

A document is kept as long as somebody holds it or it was used lately; there is never a second one of the
same block in this process.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal
from weakref import WeakValueDictionary

from weft.memory.blockdoc import NO_VERSION, BlockDoc
from weft.memory.render import render
from weft.store.base import BlockRows, Change
from weft.types.records import BlockInfo
from weft.types.schema import schema_from_dict

SNAPSHOT_EVERY = 100
"""After so many changes a snapshot is kept: loading 8,000 changes takes 146 ms, their snapshot 0.3."""


@dataclass(slots=True, weakref_slot=True, eq=False)
class Held:
    """A block's document here, how much of it is on disk, and how many changes no snapshot holds yet."""

    block_id: str
    doc: BlockDoc
    seq: int = 0
    unfolded: int = 0
    saved: bytes = NO_VERSION
    saved_at: bytes = b""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def has_unsaved(self) -> bool:
        return self.doc.version() != self.saved


class BlockCache:
    """Hands out the one document of each block."""

    def __init__(self, rows: BlockRows, *, size: int = 256) -> None:
        self._rows = rows
        self._size = size
        self._recent: OrderedDict[str, Held] = OrderedDict()
        self._alive: WeakValueDictionary[str, Held] = WeakValueDictionary()

    def __len__(self) -> int:
        return len(self._recent)

    async def get(self, info: BlockInfo) -> Held:
        """The document of a block, with everything that is on disk."""
        held = self._alive.get(info.id)
        if held is None:
            held = await self._load(info)
            held = self._alive.setdefault(info.id, held)
        elif info.version > held.seq:
            async with held.lock:
                await self.save(held, author="")
        held.doc.schema, held.doc.label = schema_from_dict(info.schema), info.label
        held.doc.char_limit = info.char_limit
        self._recent[info.id] = held
        self._recent.move_to_end(info.id)
        self._evict()
        return held

    async def save(
        self,
        held: Held,
        *,
        author: str,
        kind: Literal["edit", "undo", "redo"] = "edit",
        undoes: int | None = None,
    ) -> int:
        """Write what is new here and merge what is new on disk, in one transaction; the version after it.

        The caller holds `held.lock`, from before its edit on: so each edit is a change of its own.
        If that fails the document is let go of, so that nobody goes on with what was never written.
        """
        saved, saved_at, seq = held.saved, held.saved_at, held.seq

        def merge(others: Sequence[tuple[int, bytes]]) -> Change | None:
            nonlocal saved, saved_at, seq
            with held.doc.lock:
                own_version, own_at = held.doc.version(), held.doc.frontiers()
                blob = held.doc.export_since(held.saved) if own_version != held.saved else None
                held.doc.import_updates([update for _, update in others])
                saved, saved_at = held.doc.version(), held.doc.frontiers()
                seq = others[-1][0] if others else held.seq
                if blob is None:
                    return None
                rendered = render(held.doc.schema, held.doc.content())
            return Change(
                blob=blob,
                before=held.saved_at,
                after=own_at,
                rendered=rendered,
                author=author,
                kind=kind,
                undoes=undoes,
            )

        written = False
        try:
            version = await self._rows.merge(held.block_id, held.seq, merge)
            written = True
        finally:
            if not written:
                self.forget(held.block_id)
        held.unfolded += version > held.seq
        held.saved, held.saved_at, held.seq = saved, saved_at, max(version, seq)
        await self._compact(held)
        return version

    def forget(self, block_id: str) -> None:
        self._recent.pop(block_id, None)
        self._alive.pop(block_id, None)

    async def _load(self, info: BlockInfo) -> Held:
        chain = await self._rows.chain(info.id)
        updates = [blob for _, blob in chain.updates]
        doc = BlockDoc.load(
            schema=schema_from_dict(info.schema),
            label=info.label,
            updates=[chain.snapshot, *updates] if chain.snapshot else updates,
            char_limit=info.char_limit,
        )
        return Held(
            block_id=info.id,
            doc=doc,
            seq=chain.newest,
            unfolded=len(updates),
            saved=doc.version(),
            saved_at=doc.frontiers(),
        )

    async def _compact(self, held: Held) -> None:
        if held.unfolded >= SNAPSHOT_EVERY and not held.has_unsaved:
            await self._rows.keep_snapshot(held.block_id, held.seq, held.doc.snapshot())
            held.unfolded = 0

    def _evict(self) -> None:
        """Let go of the documents that were not used for longest, unless they hold something unsaved."""
        for block_id in list(self._recent):
            if len(self._recent) <= self._size:
                return
            if not self._recent[block_id].has_unsaved:
                del self._recent[block_id]
