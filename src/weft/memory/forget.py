"""Making a text unreadable in all changes of blocks, so that it can be forgotten for good."""

from __future__ import annotations

from collections.abc import AsyncIterator

from weft.errors import StoreError
from weft.memory.blockdoc import BlockDoc
from weft.memory.border import mentions
from weft.memory.cache import BlockCache
from weft.memory.render import render
from weft.store.base import BlockRows, MaskedBlock


async def masked_blocks(rows: BlockRows, cache: BlockCache, text: str) -> AsyncIterator[MaskedBlock]:
    """Every block that holds or held the text, without it.

    Raises:
        StoreError: it was written to a block in pieces, so that no change holds it whole.
    """
    for info in await rows.everyone():
        held = await cache.get(info)
        await cache.save(held, author="")
        with held.doc.lock:
            hidden, seq = held.doc.without(text), held.seq
        await _check(rows, info.id, hidden or held.doc, text)
        if hidden is not None:
            shown = render(hidden.schema, hidden.content())
            yield MaskedBlock(block_id=info.id, seq=seq, snapshot=hidden.snapshot(), rendered=shown)


async def _check(rows: BlockRows, block_id: str, doc: BlockDoc, text: str) -> None:
    """See that no version shows the text any more."""
    for version in await rows.history(block_id):
        states = await rows.states(block_id, version.version)
        if states is not None and mentions(doc.at(states[1]).values(), text):
            raise StoreError(f"The block {doc.label!r} holds the text in pieces: delete the block.")
