"""Redaction of a text from all changes of blocks, so that it is gone for good."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

from weft.errors import StoreError
from weft.memory.blockdoc import BlockDoc
from weft.memory.cache import BlockCache
from weft.memory.schemas.registry import render_block
from weft.store.blocks import BlockRows, MaskedBlock
from weft.types.codec import dump_json
from weft.types.memory import BlockInfo
from weft.types.redaction import Redaction
from weft.types.schema import BlockSchema, schema_from_dict


async def masked_blocks(rows: BlockRows, cache: BlockCache, text: str) -> AsyncIterator[MaskedBlock]:
    """Yield every block that holds or held the text, without it.

    A text that was written in pieces, such as a number whose end was changed, is in no change as a whole.
    Such a block starts again with what it shows now, and its history is gone.

    Raises:
        StoreError: the block shows the text even so.
    """
    redaction = Redaction.of(text)
    for info in await rows.list_all():
        block = await cache.get(info)
        await cache.save(block, author="")
        with block.doc.lock:
            masked, seq = block.doc.without(redaction), block.seq
        start_again = None
        if await _shows(rows, info.id, masked or block.doc, redaction):
            rebuilt = block.doc.rebuilt(redaction)
            masked = rebuilt.without(redaction) or rebuilt
            start_again = masked.frontiers()
        if masked is not None or start_again is not None or _is_rendered(block.doc, redaction):
            masked = masked or block.doc.at(block.doc.frontiers())
            masked.schema = _without(redaction, info)
            rendered = render_block(masked)
            if masked.holds(redaction) or redaction.is_in(rendered):
                raise StoreError(f"The text cannot be taken out of {info.label!r}: delete that block.")
            yield MaskedBlock(
                block_id=info.id,
                seq=seq,
                snapshot=masked.snapshot(),
                rendered=rendered,
                start_again=start_again,
            )


def _without(redaction: Redaction, info: BlockInfo) -> BlockSchema:
    """Return the schema of a block as the purge stores it."""
    return schema_from_dict(json.loads(redaction.in_text(dump_json(dict(info.schema)))))


async def _shows(rows: BlockRows, block_id: str, doc: BlockDoc, redaction: Redaction) -> bool:
    """Check whether any version of a block still shows the text."""
    for version in await rows.history(block_id):
        states = await rows.states(block_id, version.version)
        if states is not None and doc.at(states[1]).holds(redaction):
            return True
    return doc.holds(redaction)


def _is_rendered(doc: BlockDoc, redaction: Redaction) -> bool:
    """Check whether a block shows the text although no value of it has it, such as `name: value`."""
    return not redaction.text.isdigit() and redaction.is_in(render_block(doc))
