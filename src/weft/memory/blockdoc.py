"""The CRDT document of a memory block: its versions, and the updates that bring others up to date."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from loro import DiffEvent, ExportMode, Frontiers, LoroDoc

from weft.errors import StoreError
from weft.memory.containers import Containers
from weft.memory.events import BlockChanged, Subscription
from weft.memory.loro_adapter import (
    covers,
    guarded,
    holds,
    masked,
    pack,
    point_without,
    rebuilt,
    set_fields,
    split,
    text_steps,
    trigger,
    unpack,
)
from weft.memory.rebase import apply_steps, rebase
from weft.store.blocks import Chain, Update
from weft.types.redaction import Redaction
from weft.types.schema import BlockSchema

_log = logging.getLogger(__name__)

NO_VERSION = b""
"""The version of an empty document: `export_since(NO_VERSION)` is everything."""


class BlockDoc(Containers):
    """A block's document in this process. Permissions and limits are the business of `Document`."""

    def __init__(
        self,
        *,
        schema: BlockSchema,
        label: str,
        char_limit: int | None = None,
        peer: int | None = None,
        doc: LoroDoc | None = None,
    ) -> None:
        doc = LoroDoc() if doc is None else doc
        super().__init__(schema=schema, label=label, char_limit=char_limit, doc=doc)
        self._events: deque[DiffEvent] = deque()
        self._callbacks: list[Callable[[BlockChanged], object]] = []
        self._quiet = 0
        with self._loro("prepared"):
            if peer is not None:
                self._doc.peer_id = peer
            # A callback that raises makes Loro panic. The append of a deque cannot raise.
            self._subscription = self._doc.subscribe_root(self._events.append)

    @classmethod
    def load(
        cls,
        *,
        schema: BlockSchema,
        label: str,
        updates: Sequence[bytes] = (),
        later: Sequence[Update] = (),
        char_limit: int | None = None,
        peer: int | None = None,
    ) -> BlockDoc:
        """Build a document from updates in any order, snapshots among them, and then later ones in order.

        Raises:
            StoreError: an update is damaged, or one that others build on is missing.
        """
        block = cls(schema=schema, label=label, char_limit=char_limit, peer=peer)
        if not (block.import_updates(updates) and block.follow(later)):
            raise StoreError(f"The block {label!r} lacks some of its history: restore it from a backup.")
        return block

    # --- versions and updates. Whatever looks at a version commits first.

    def commit(self) -> None:
        """End the current edit and notify the subscribers."""
        with self._loro("saved"):
            self._doc.commit()
        self.notify()

    def version(self) -> bytes:
        """Return which edits of which process the document has: what `export_since` counts from.

        Two documents with the same edits have the same version, to the byte.
        """
        self.commit()
        with self._loro("read"):
            return pack(self._doc.oplog_vv)

    def frontiers(self) -> bytes:
        """Return the current point in the document's history, a short value."""
        self.commit()
        with self._loro("read"):
            return self._doc.oplog_frontiers.encode()

    def snapshot(self) -> bytes:
        """Export the whole document with its history."""
        self.commit()
        with self._loro("exported"):
            return self._doc.export(ExportMode.Snapshot())

    def export_since(self, version: bytes) -> bytes:
        """Export the update that brings a document of that version up to this one."""
        self.commit()
        with self._loro("exported"):
            return self._doc.export(ExportMode.Updates(unpack(version)))

    def import_updates(self, updates: Sequence[bytes]) -> bool:
        """Merge updates and snapshots of the same block. Returns False if some wait for others.

        Edits that the document has already are skipped. If an update is damaged, none is merged.

        Raises:
            StoreError: an update is damaged.
        """
        self.commit()
        with self._loro("merged with its updates"):
            # Several at once are merged from scratch: 50 MB of text took more memory than there was.
            alone = len(updates) == 1
            status = self._doc.import_(updates[0]) if alone else self._doc.import_batch(list(updates))
        self.notify()
        return status.pending is None

    def follow(self, updates: Sequence[Update]) -> bool:
        """Merge changes in the order in which they were stored. Returns False if one is missing before them.

        A change that was made on top of this state is merged alone, which is cheap however long the history
        is. Concurrent changes are merged together, because each such merge goes through all of them.
        """
        self.commit()
        at = self.frontiers()
        for number, update in enumerate(updates):
            if update.before != at:
                return self.import_updates([later.blob for later in updates[number:]])
            with self._loro("merged with its updates"):
                if self._doc.import_(update.blob).pending is not None:
                    return False
            at = self.frontiers()
        self.notify()
        return True

    def at(self, frontiers: bytes) -> BlockDoc:
        """Return a separate document with the state at a point."""
        self.commit()
        with self._loro("read at an earlier version"):
            return self._like(self._doc.fork_at(Frontiers.decode(frontiers)))

    def without(self, redaction: Redaction) -> BlockDoc | None:
        """Return the same document with a text redacted in all of its changes, or None if it is in none."""
        self.commit()
        with self._loro("rewritten"):
            doc = masked(self._doc, redaction)
        return None if doc is None else self._like(doc)

    def holds(self, redaction: Redaction) -> bool:
        """Check whether a text is in the content, whether the schema shows it or not."""
        with self._loro("read"):
            return holds(self._doc, redaction)

    def rebuilt(self, redaction: Redaction) -> BlockDoc:
        """Return a document with the same content, a text covered in it, and no history."""
        self.commit()
        with self._loro("rebuilt"):
            return self._like(rebuilt(self._doc, redaction))

    def _like(self, doc: LoroDoc) -> BlockDoc:
        return BlockDoc(schema=self.schema, label=self.label, char_limit=self.char_limit, doc=doc)

    def values(self) -> Any:
        """Return all that the document holds, whether its schema shows it or not."""
        with self._loro("read"):
            return self._doc.get_deep_value()

    def become(self, chain: Chain, *, edits_since: bytes | None) -> tuple[bytes, bytes]:
        """Replace the document by the stored one, with the unsaved edits since a version, or without any.

        If the stored block has another history by now, these edits are lost. Returns the version and the
        point of what is stored.
        """
        fresh = BlockDoc.load(
            schema=self.schema,
            label=self.label,
            updates=[chain.snapshot] if chain.snapshot else (),
            later=chain.updates,
        )
        saved = fresh.version(), fresh.frontiers()
        with self.lock:
            if edits_since is not None and covers(saved[0], edits_since):
                fresh.import_updates([self.export_since(edits_since)])
            with self._loro("read again"):
                self._doc = fresh._doc
                self._subscription = self._doc.subscribe_root(self._events.append)
        return saved

    def has_point(self, point: bytes) -> bool:
        """Check whether a point is in the document's history."""
        with suppress(StoreError), self._loro("read at an earlier version"):
            frontiers = Frontiers.decode(point)
            return frontiers.encode() == point and self._doc.frontiers_to_vv(frontiers) is not None
        return False

    def point_without(self, changes: Iterable[tuple[bytes, bytes]]) -> bytes:
        """Return the point that has all edits but these changes, each given by the points around it."""
        self.commit()
        with self._loro("read at an earlier version"):
            return point_without(self._doc, changes).encode()

    def rebase(self, text: str, base: bytes) -> str:
        """Merge a whole new text, written for the state at a point, with the edits since that point."""
        if base == self.frontiers():
            return text
        with self._loro("read at an earlier version"):
            then, now = Frontiers.decode(base), self._doc.oplog_frontiers
            back, forth = text_steps(self._doc.diff(now, then)), text_steps(self._doc.diff(then, now))
        return rebase(apply_steps(self.text(), back), text, forth)

    def reverse(self, before: bytes, after: bytes) -> bool:
        """Undo what happened between two points and keep later edits. Returns whether that changed anything.

        A field that was set again since is left alone. Fields are set anew, because a value written in the
        past would lose against each later one. All else is undone in the past, where its offsets are right,
        and merged.
        """
        before_undo = self.version()
        with self._loro("undone"):
            start, end, now = Frontiers.decode(before), Frontiers.decode(after), self._doc.oplog_frontiers
            fields, rest = split(self._doc.diff(end, start), self._doc.diff(end, now))
            fork = self._doc.fork_at(end)
            fork.apply_diff(rest)
            fork.commit()
            self._doc.import_(fork.export(ExportMode.Updates(self._doc.oplog_vv)))
            set_fields(self._doc, fields)
        self.notify()
        return self.version() != before_undo

    def subscribe_root(self, callback: Callable[[BlockChanged], object]) -> Subscription:
        """Call back after each commit and each merge that changed something."""
        # A callable of its own, so that a callback that subscribed twice can unsubscribe once.
        own = partial(callback)
        self._callbacks.append(own)
        return Subscription(self._callbacks, own)

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Hold notifications back until `notify`: a subscriber must not run while a transaction is open."""
        with self.lock:
            self._quiet += 1
            try:
                yield
            finally:
                self._quiet -= 1

    def notify(self) -> None:
        """Call the subscribers, outside of Loro and, unless the caller holds it, outside of the lock."""
        if self._quiet:
            return
        with self.lock:
            changes = [BlockChanged(label=self.label, triggered_by=trigger(event)) for event in self._events]
            self._events.clear()
        for change in changes:
            for callback in tuple(self._callbacks):
                try:
                    with guarded(f"A subscriber of the block {self.label!r} failed"):
                        callback(change)
                except StoreError as error:
                    _log.warning("a subscriber of a block failed: %s", error, exc_info=error.__cause__)
