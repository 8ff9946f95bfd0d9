"""Making a text unreadable in all changes of blocks, so that it can be forgotten for good."""

from __future__ import annotations

from collections.abc import AsyncIterator

from weft.errors import StoreError
from weft.memory.blockdoc import BlockDoc
from weft.memory.cache import BlockCache
from weft.memory.loro_adapter import mentions
from weft.memory.schemas.registry import render_block
from weft.store.base import BlockRows, MaskedBlock


async def masked_blocks(rows: BlockRows, cache: BlockCache, text: str) -> AsyncIterator[MaskedBlock]:
    """Every block that holds or held the text, without it.

    A text that was written in pieces, such as a number whose end was changed, is in no change as a whole:
    such a block starts again with what it shows now, and its history is gone.

    Raises:
        StoreError: even so the text is still there.
    """
    for info in await rows.everyone():
        held = await cache.get(info)
        await cache.save(held, author="")
        with held.doc.lock:
            hidden, seq = held.doc.without(text), held.seq
        start_again = None
        if await _shows(rows, info.id, hidden or held.doc, text):
            rebuilt = held.doc.rebuilt()
            hidden = rebuilt.without(text) or rebuilt
            start_again = hidden.frontiers()
            if mentions(hidden.values(), text):
                raise StoreError(f"The text cannot be taken out of {info.label!r}: delete that block.")
        if hidden is not None:
            yield MaskedBlock(
                block_id=info.id,
                seq=seq,
                snapshot=hidden.snapshot(),
                rendered=render_block(hidden),
                start_again=start_again,
            )


async def _shows(rows: BlockRows, block_id: str, doc: BlockDoc, text: str) -> bool:
    """Whether any version of a block still shows the text."""
    for version in await rows.history(block_id):
        states = await rows.states(block_id, version.version)
        if states is not None and mentions(doc.at(states[1]).values(), text):
            return True
    return mentions(doc.values(), text)
