"""Making a text unreadable in all changes of blocks, so that it can be forgotten for good."""

from __future__ import annotations

from collections.abc import AsyncIterator

from weft.memory.cache import BlockCache
from weft.memory.render import render
from weft.store.base import BlockRows, MaskedBlock


async def masked_blocks(rows: BlockRows, cache: BlockCache, text: str) -> AsyncIterator[MaskedBlock]:
    """Every block that holds or held the text, without it. Raises StoreError if it cannot be taken out."""
    for info in await rows.everyone():
        held = await cache.get(info)
        async with held.lock:
            await cache.save(held, author="")
            hidden = held.doc.without(text)
        if hidden is not None:
            shown = render(hidden.schema, hidden.content())
            yield MaskedBlock(block_id=info.id, seq=held.seq, snapshot=hidden.snapshot(), rendered=shown)
