"""Documents in memory: loaded when first used, brought up to date when read, written through at once.

A document is kept as long as somebody holds it or it was used lately; there is never a second one of the
same block in this process. What is begun here is finished, even if whoever asked for it is cancelled.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar
from weakref import WeakValueDictionary

from weft.errors import StoreError, WeftError
from weft.memory.blockdoc import NO_VERSION, BlockDoc
from weft.memory.history import redoable, undoable
from weft.memory.schemas.registry import render_block
from weft.store.base import BlockRows, Change, Moment, Update
from weft.types.memory import BlockInfo
from weft.types.schema import schema_from_dict

T = TypeVar("T")
_log = logging.getLogger(__name__)

Work = Callable[[Moment], tuple[T, dict[str, Any]]]
"""An edit: its result, and what the recorded change says of it besides its author."""

SNAPSHOT_EVERY = 100
"""After so many changes a snapshot is kept: loading 8,000 changes takes 146 ms, their snapshot 0.3."""


@dataclass(slots=True, weakref_slot=True, eq=False)
class LoadedBlock:
    """A block's document here, up to which change it has all, and how many of them no snapshot holds yet.

    `saved` and `saved_at` are the document's state without the edits that were not written yet. `has_gap`
    says that it has a change of its own beyond `seq`, and lacks changes of others before that.
    """

    info: BlockInfo
    doc: BlockDoc
    seq: int = 0
    unfolded: int = 0
    saved: bytes = NO_VERSION
    saved_at: bytes = b""
    has_gap: bool = False
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def block_id(self) -> str:
        return self.info.id

    @property
    def has_unsaved(self) -> bool:
        return self.doc.version() != self.saved

    @property
    def version(self) -> str:
        """What the document holds now, as a value that lasts and can be printed.

        It is the number of the newest change. If the document holds other edits too, the exact point in its
        history follows.
        """
        with self.doc.lock:
            point = self.doc.frontiers()
            is_exact = point == self.saved_at and not self.has_gap
            return str(self.seq) if is_exact else f"{self.seq}@{point.hex()}"

    def point(self, version: str, moment: Moment) -> bytes:
        """Return the point in the history that a version stands for. All changes must have been merged.

        Raises:
            StoreError: the block has no such version.
        """
        if version == str(self.seq):
            return self.doc.frontiers()
        _, is_exact, point = version.partition("@")
        if is_exact and _is_hex(point) and self.doc.has_point(bytes.fromhex(point)):
            return bytes.fromhex(point)
        numbers = [entry.version for entry in moment.history()]
        if version not in map(str, numbers):
            name = f"The block {self.info.label!r}"
            raise StoreError(
                f"{name} has no version {version!r}: read it again, and use the version you read."
            )
        later = [moment.states(number) for number in numbers if number > int(version)]
        return self.doc.point_without(states for states in later if states is not None)

    def settle(self) -> None:
        """Note that all edits of the document are written."""
        self.saved, self.saved_at = self.doc.version(), self.doc.frontiers()

    def follow(self, updates: Sequence[Update]) -> bool:
        """Merge what is on disk, unless something was edited here that is not: undo must know whose it is."""
        with self.doc.lock:
            if self.has_unsaved:
                return False
            if updates:
                self.doc.follow(updates)
                self.seq, self.unfolded = updates[-1].seq, self.unfolded + len(updates)
                self.has_gap = False
                self.settle()
            return True


class BlockCache:
    """Hands out the one document of each block, and writes what was edited."""

    def __init__(self, rows: BlockRows, *, size: int = 256) -> None:
        self._rows = rows
        self._size = size
        self._recent: OrderedDict[str, LoadedBlock] = OrderedDict()
        self._alive: WeakValueDictionary[str, LoadedBlock] = WeakValueDictionary()
        self._tasks: set[asyncio.Task[Any]] = set()

    def __len__(self) -> int:
        return len(self._recent)

    async def get(self, info: BlockInfo) -> LoadedBlock:
        """The document of a block, with everything that is on disk."""
        held = await self.find(info)
        if info.version > held.seq:
            await self._whole(held, self._follow(held))
        return held

    async def find(self, info: BlockInfo) -> LoadedBlock:
        """The document of a block as it is here; it may lack what others wrote lately."""
        held = self._alive.get(info.id)
        if held is None:
            held = await self._load(info)
            held = self._alive.setdefault(info.id, held)
        elif info.epoch > held.info.epoch:
            await self._whole(held, self._start_again(held, info))
        with held.doc.lock:
            if info.epoch == held.info.epoch and _newer(info, held.info):
                held.info, held.doc.char_limit = info, info.char_limit
                held.doc.schema, held.doc.label = schema_from_dict(info.schema), info.label
        self._recent[info.id] = held
        self._recent.move_to_end(info.id)
        self._evict()
        return held

    async def save(self, held: LoadedBlock, *, author: str) -> None:
        """Write the edits that were made here. What others wrote meanwhile is merged by whoever reads.

        If that fails they are still here, and can be saved again.
        """
        await self._whole(held, self._save(held, author))

    async def edit(self, held: LoadedBlock, edit: Callable[[], T], *, author: str) -> T:
        """Make an edit on top of everything that is on disk, while nobody else writes, and write it.

        So edits of many processes follow each other in one line, which is what makes merging them cheap.
        """

        return await self.change(held, lambda _: (edit(), {}), author=author)

    async def change(self, held: LoadedBlock, work: Work[T], *, author: str) -> T:
        """Make an edit that depends on the block's history, or whose change is of another kind."""
        return await self._whole(held, self._on_top(held, work, author))

    async def reverse(self, held: LoadedBlock, kind: Literal["undo", "redo"], *, author: str) -> bool:
        """Take the newest change back, or bring one back; whether there was one."""

        def work(moment: Moment) -> tuple[bool, dict[str, Any]]:
            history = moment.history()
            target = undoable(history) if kind == "undo" else redoable(history)
            states = None if target is None else moment.states(target.version)
            if target is None or states is None or not held.doc.reverse(*states):
                return False, {}
            return True, {"kind": kind, "undoes": target.version}

        return await self.change(held, work, author=author)

    async def keep_text(self, held: LoadedBlock) -> None:
        """Keep what a block shows, for those who read it without its document."""
        await self._whole(held, self._keep_text(held))

    def forget(self, block_id: str) -> None:
        self._recent.pop(block_id, None)
        self._alive.pop(block_id, None)

    # --- all that follows runs under the block's lock

    async def _whole(self, held: LoadedBlock, work: Coroutine[Any, Any, T]) -> T:
        """Do it alone, and to its end: half of it would leave the document unlike what is on disk."""

        async def alone() -> T:
            async with held.lock:
                return await work

        task = asyncio.create_task(alone())
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return await asyncio.shield(task)

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # whoever asked was told, or has gone

    async def _save(self, held: LoadedBlock, author: str) -> None:
        with held.doc.lock:
            saved, saved_at = held.doc.version(), held.doc.frontiers()
            if saved == held.saved:
                return
            blob = held.doc.export_since(held.saved)
        change = Change(blob=blob, before=held.saved_at, after=saved_at, author=author)
        seq, previous = await self._rows.record(held.block_id, change)
        held.saved, held.saved_at = saved, saved_at
        if previous == held.seq:
            held.seq, held.unfolded = seq, held.unfolded + 1
            await self._compact(held)
        else:
            held.has_gap = True

    async def _on_top(self, held: LoadedBlock, work: Work[T], author: str) -> T:
        while True:
            await self._save(held, "")
            attempt = _Attempt(held, work, author)
            try:
                version = await self._rows.merge(held.block_id, held.seq, attempt.merge)
            except StoreError:
                await self._undo_attempt(held, attempt)
                raise
            held.doc.tell()
            if not attempt.followed:  # edited here this moment: that is written first
                continue
            if attempt.overtaken:
                held.has_gap = True
            else:
                held.unfolded += version > held.seq
                held.seq = version
            held.saved, held.saved_at = attempt.saved
            await self._compact(held)
            if attempt.error is not None:
                raise attempt.error
            return attempt.results[0]

    async def _undo_attempt(self, held: LoadedBlock, attempt: _Attempt[T]) -> None:
        """It was not written: the document must not show it, nor write it later."""
        if attempt.results and attempt.saved[0] != held.saved:
            chain = await self._rows.chain(held.block_id)
            held.saved, held.saved_at = held.doc.become(chain, edits_since=None)
            held.seq, held.has_gap = chain.newest, False

    async def _keep_text(self, held: LoadedBlock) -> None:
        while True:
            await self._follow(held)
            with held.doc.lock:
                if held.has_unsaved:
                    continue
                info, seq = held.info, held.seq
                text = render_block(held.doc)
            await self._rows.keep_rendered(info, text, seq)
            return

    async def _follow(self, held: LoadedBlock) -> None:
        """Write what was edited here, and merge what is on disk."""
        while True:
            await self._save(held, "")
            if held.follow(await self._rows.since(held.block_id, held.seq)):
                break
        await self._compact(held)

    async def _start_again(self, held: LoadedBlock, info: BlockInfo) -> None:
        """Something in all changes was made unreadable: what is here still shows it."""
        if held.info.epoch < info.epoch:
            chain = await self._rows.chain(held.block_id)
            held.saved, held.saved_at = held.doc.become(chain, edits_since=held.saved)
            held.seq, held.unfolded, held.info = chain.newest, len(chain.updates), info
            held.has_gap = False

    async def _load(self, info: BlockInfo) -> LoadedBlock:
        chain = await self._rows.chain(info.id)
        doc = BlockDoc.load(
            schema=schema_from_dict(info.schema),
            label=info.label,
            updates=[chain.snapshot] if chain.snapshot else (),
            later=chain.updates,
            char_limit=info.char_limit,
        )
        held = LoadedBlock(info=info, doc=doc, seq=chain.newest, unfolded=len(chain.updates))
        held.settle()
        await self._compact(held)
        return held

    async def _compact(self, held: LoadedBlock) -> None:
        """Keep a snapshot now and then. It saves time only, so a failure is no more than a warning."""
        with held.doc.lock:
            if held.unfolded < SNAPSHOT_EVERY or held.has_unsaved:
                return
            info, seq, snapshot = held.info, held.seq, held.doc.snapshot()
        try:
            await self._rows.keep_snapshot(info, seq, snapshot)
            held.unfolded = 0
        except StoreError as error:
            _log.warning("No snapshot of the block %r was kept: %s", info.label, error)

    def _evict(self) -> None:
        """Let go of the documents that were not used for longest, unless they hold something unsaved."""
        for block_id in list(self._recent):
            if len(self._recent) <= self._size:
                return
            if not self._recent[block_id].has_unsaved:
                del self._recent[block_id]


class _Attempt(Generic[T]):
    """One edit on top of everything. `merge` may be asked twice; the edit is made once."""

    def __init__(self, held: LoadedBlock, work: Work[T], author: str) -> None:
        self._held, self._work, self._author = held, work, author
        self._since = held.seq
        self._change: Change | None = None
        self._asked = False
        self.followed = self.overtaken = False
        self.saved = held.saved, held.saved_at
        self.results: list[T] = []
        self.error: WeftError | None = None

    def merge(self, moment: Moment) -> Change | None:
        held = self._held
        with held.doc.lock, held.doc.quiet():
            if not self._asked:
                self._asked, self.followed = True, held.follow(moment.others)
                if self.followed:
                    self._edit(moment)
            newest = moment.others[-1].seq if moment.others else self._since
            self.overtaken = newest != held.seq
        return self._change

    def _edit(self, moment: Moment) -> None:
        held, more = self._held, dict[str, Any]()
        try:
            result, more = self._work(moment)
            self.results.append(result)
        except WeftError as error:
            self.error = error
        self.saved = held.doc.version(), held.doc.frontiers()
        if self.saved[0] != held.saved:
            blob = held.doc.export_since(held.saved)
            self._change = Change(
                blob=blob, before=held.saved_at, after=self.saved[1], author=self._author, **more
            )


def _newer(info: BlockInfo, held: BlockInfo) -> bool:
    return info.updated_at is None or held.updated_at is None or info.updated_at >= held.updated_at


def _is_hex(text: str) -> bool:
    return len(text) % 2 == 0 and set(text) <= set("0123456789abcdef")
