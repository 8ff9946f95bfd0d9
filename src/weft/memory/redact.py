"""Redaction of a text from all changes of blocks, so that it is gone for good."""

from __future__ import annotations

from collections.abc import AsyncIterator

from weft.errors import StoreError
from weft.memory.blockdoc import BlockDoc
from weft.memory.cache import BlockCache
from weft.memory.loro_adapter import mentions
from weft.memory.schemas.registry import render_block
from weft.store.blocks import BlockRows, MaskedBlock


async def masked_blocks(rows: BlockRows, cache: BlockCache, text: str) -> AsyncIterator[MaskedBlock]:
    """Yield every block that holds or held the text, without it.

    A text that was written in pieces, such as a number whose end was changed, is in no change as a whole.
    Such a block starts again with what it shows now, and its history is gone.

    Raises:
        StoreError: the block shows the text even so.
    """
    for info in await rows.list_all():
        block = await cache.get(info)
        await cache.save(block, author="")
        with block.doc.lock:
            masked, seq = block.doc.without(text), block.seq
        start_again = None
        if await _shows(rows, info.id, masked or block.doc, text):
            rebuilt = block.doc.rebuilt()
            masked = rebuilt.without(text) or rebuilt
            start_again = masked.frontiers()
            if mentions(masked.values(), text):
                raise StoreError(f"The text cannot be taken out of {info.label!r}: delete that block.")
        if masked is not None:
            yield MaskedBlock(
                block_id=info.id,
                seq=seq,
                snapshot=masked.snapshot(),
                rendered=render_block(masked),
                start_again=start_again,
            )


async def _shows(rows: BlockRows, block_id: str, doc: BlockDoc, text: str) -> bool:
    """Check whether any version of a block still shows the text."""
    for version in await rows.history(block_id):
        states = await rows.states(block_id, version.version)
        if states is not None and mentions(doc.at(states[1]).values(), text):
            return True
    return mentions(doc.values(), text)
