"""Documents in memory: loaded when first used, brought up to date when read, written through at once.

A document is kept as long as somebody holds it or it was used lately; there is never a second one of the
same block in this process.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeVar
from weakref import WeakValueDictionary

from weft.errors import WeftError
from weft.memory.blockdoc import NO_VERSION, BlockDoc
from weft.memory.render import render
from weft.store.base import BlockRows, Change, Update
from weft.types.records import BlockInfo
from weft.types.schema import schema_from_dict

T = TypeVar("T")

SNAPSHOT_EVERY = 100
"""After so many changes a snapshot is kept: loading 8,000 changes takes 146 ms, their snapshot 0.3."""


@dataclass(slots=True, weakref_slot=True, eq=False)
class Held:
    """A block's document here, up to which change it has all, and how many of them no snapshot holds yet.

    `saved` and `saved_at` are the document's state without the edits that were not written yet.
    """

    block_id: str
    doc: BlockDoc
    seq: int = 0
    epoch: int = 0
    unfolded: int = 0
    saved: bytes = NO_VERSION
    saved_at: bytes = b""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def has_unsaved(self) -> bool:
        return self.doc.version() != self.saved

    def settle(self) -> None:
        """All that the document has is written."""
        self.saved, self.saved_at = self.doc.version(), self.doc.frontiers()

    def follow(self, updates: Sequence[Update]) -> bool:
        """Merge what is on disk, unless something was edited here that is not: undo must know whose it is."""
        with self.doc.lock:
            if self.has_unsaved:
                return False
            if updates:
                self.doc.follow(updates)
                self.seq, self.unfolded = updates[-1].seq, self.unfolded + len(updates)
                self.settle()
            return True


class BlockCache:
    """Hands out the one document of each block. Whoever writes holds `Held.lock`, from before its edit on."""

    def __init__(self, rows: BlockRows, *, size: int = 256) -> None:
        self._rows = rows
        self._size = size
        self._recent: OrderedDict[str, Held] = OrderedDict()
        self._alive: WeakValueDictionary[str, Held] = WeakValueDictionary()

    def __len__(self) -> int:
        return len(self._recent)

    async def get(self, info: BlockInfo) -> Held:
        """The document of a block, with everything that is on disk."""
        held = await self.find(info)
        if info.version > held.seq:
            async with held.lock:
                await self._follow(held)
        return held

    async def find(self, info: BlockInfo) -> Held:
        """The document of a block as it is here; it may lack what others wrote lately."""
        held = self._alive.get(info.id)
        if held is None:
            held = await self._load(info)
            held = self._alive.setdefault(info.id, held)
        elif info.epoch > held.epoch:
            async with held.lock:
                await self._start_again(held, info.epoch)
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
    ) -> None:
        """Write the edits that were made here. What others wrote meanwhile is merged by whoever reads.

        If that fails the document is let go of, so that nobody goes on with what was never written.
        """
        with held.doc.lock:
            saved, saved_at = held.doc.version(), held.doc.frontiers()
            if saved == held.saved:
                return
            blob = held.doc.export_since(held.saved)
        change = Change(
            blob=blob, before=held.saved_at, after=saved_at, author=author, kind=kind, undoes=undoes
        )
        seq, previous = await self._or_forget(held, self._rows.record(held.block_id, change))
        held.saved, held.saved_at = saved, saved_at
        if previous == held.seq:
            held.seq, held.unfolded = seq, held.unfolded + 1
            await self._compact(held)

    async def edit(self, held: Held, edit: Callable[[], T], *, author: str) -> T:
        """Make an edit on top of everything that is on disk, while nobody else writes, and write it.

        So edits of many processes follow each other in one line, which is what makes merging them cheap.
        """
        await self.save(held, author="")
        outcome: list[T | WeftError] = []
        followed, saved, saved_at = False, held.saved, held.saved_at

        def merge(others: Sequence[Update]) -> Change | None:
            nonlocal followed, saved, saved_at
            with held.doc.lock:
                if not outcome:  # asked a second time, the edit is made already
                    followed = held.follow(others)
                    try:
                        outcome.append(edit())
                    except WeftError as error:
                        outcome.append(error)
                saved, saved_at = held.doc.version(), held.doc.frontiers()
                if saved == held.saved:
                    return None
                blob = held.doc.export_since(held.saved)
                return Change(blob=blob, before=held.saved_at, after=saved_at, author=author)

        version = await self._or_forget(held, self._rows.merge(held.block_id, held.seq, merge))
        if followed:
            held.unfolded += version > held.seq
            held.seq = version
        held.saved, held.saved_at = saved, saved_at
        await self._compact(held)
        if isinstance(outcome[0], WeftError):
            raise outcome[0]
        return outcome[0]

    async def keep_text(self, held: Held) -> None:
        """Keep what a block shows, for those who read it without its document."""
        async with held.lock:
            await self._follow(held)
            with held.doc.lock:
                if held.has_unsaved:  # edited this moment: whoever reads next keeps it
                    return
                text, seq = render(held.doc.schema, held.doc.content()), held.seq
            await self._rows.keep_rendered(held.block_id, text, seq)

    def forget(self, block_id: str) -> None:
        self._recent.pop(block_id, None)
        self._alive.pop(block_id, None)

    async def _follow(self, held: Held) -> None:
        """Write what was edited here, and merge what is on disk."""
        while True:
            await self.save(held, author="")
            if held.follow(await self._rows.since(held.block_id, held.seq)):
                break
        await self._compact(held)

    async def _start_again(self, held: Held, epoch: int) -> None:
        """Something in all changes was made unreadable: what is here still shows it."""
        chain = await self._rows.chain(held.block_id)
        if chain.snapshot is not None and held.epoch < epoch:
            held.doc.become(chain.snapshot)
            held.doc.follow(chain.updates)
            held.epoch = epoch

    async def _or_forget(self, held: Held, work: Awaitable[T]) -> T:
        done = False
        try:
            result = await work
            done = True
        finally:
            if not done:
                self.forget(held.block_id)
        return result

    async def _load(self, info: BlockInfo) -> Held:
        chain = await self._rows.chain(info.id)
        doc = BlockDoc.load(
            schema=schema_from_dict(info.schema),
            label=info.label,
            updates=[chain.snapshot] if chain.snapshot else (),
            later=chain.updates,
            char_limit=info.char_limit,
        )
        held = Held(
            block_id=info.id, doc=doc, seq=chain.newest, epoch=info.epoch, unfolded=len(chain.updates)
        )
        held.settle()
        await self._compact(held)
        return held

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
