"""Memory blocks, each between its own tags."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from weft.sources.base import BuildRequest, Options, title_of
from weft.types.escape import joined, without_tags
from weft.types.memory import BlockType, RenderedBlock
from weft.types.person import person_of
from weft.types.section import ONCE, Offer, Origin, Piece, Stability, Withheld


@dataclass(frozen=True, slots=True, kw_only=True)
class BlocksOptions(Options):
    kind: Literal["core", "working"] = "core"
    include_descriptions: bool = True
    include_schemas: bool = False


async def offer(request: BuildRequest, options: BlocksOptions) -> Offer:
    """Offer core blocks always, working blocks if pinned, and any other only if this turn names it."""
    if request.blocks is None:
        return Offer()
    blocks, batch, config = await request.blocks, request.batch_blocks, request.config
    visible = [block for block in blocks if _belongs(block, options, batch)]
    descriptions, schemas = config.include_descriptions, config.include_schemas
    descriptions = options.include_descriptions if descriptions is None else descriptions
    schemas = options.include_schemas if schemas is None else schemas
    pieces = tuple(
        Piece(
            text=render_block(block, descriptions=descriptions, schemas=schemas),
            id=block.id if block.is_always_shown else f"{ONCE}{block.id}",
            title=title_of(block.label),
            why=_why(block),
            stability=Stability.SESSION,
            origin=Origin.AGENT,
        )
        for block in visible
    )
    unknown = _unknown(blocks, batch) if options.kind == "working" else ()
    return Offer(
        pieces=pieces,
        worth=_worth(visible, batch),
        join=None,
        withheld=unknown,
        has_tags=True,
        existing=frozenset(piece.id for piece in pieces),
    )


def _worth(visible: Sequence[RenderedBlock], batch: frozenset[str]) -> tuple[float, ...]:
    """Rank the blocks that a turn names above the others: the turn is about them."""
    if not batch:
        return ()
    return tuple(float(len(visible) * (block.id in batch) - at) for at, block in enumerate(visible))


def _belongs(block: RenderedBlock, options: BlocksOptions, batch: frozenset[str]) -> bool:
    if block.block_type == BlockType.CORE:
        return options.kind == "core"
    return options.kind == "working" and (block.id in batch or block.is_always_shown)


def _unknown(blocks: Sequence[RenderedBlock], batch: frozenset[str]) -> tuple[Withheld, ...]:
    """List the blocks that this turn names but the agent cannot read."""
    reason = "this agent has no block with this id"
    missing = sorted(batch - {block.id for block in blocks})
    return tuple(Withheld(title=block_id, tokens=0, reason=reason) for block_id in missing)


def render_block(block: RenderedBlock, *, descriptions: bool = True, schemas: bool = False) -> str:
    """Render a block as the model sees it; its content cannot close its tag or open another."""
    label = _attribute(block.label)
    owner = person_of(block.shared_from) or block.shared_from
    shared = f' shared_from="{_attribute(owner)}"' if owner else ""
    about = f"{without_tags(block.description)}\n\n" if descriptions and block.description else ""
    if schemas and block.schema:
        compact = json.dumps(dict(block.schema), ensure_ascii=False, separators=(",", ":"))
        about += f"Schema: {without_tags(compact)}\n"
    return (
        f'<block:{label} permission="{block.permission}"{shared}>\n'
        f"{joined('', (about, without_tags(block.content)))}\n</block:{label}>"
    )


def _attribute(text: str) -> str:
    """Escape a label so that it cannot end its tag."""
    for mark, harmless in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;")):
        text = text.replace(mark, harmless)
    return " ".join(text.split())


def _why(block: RenderedBlock) -> str:
    if block.block_type == BlockType.CORE:
        return "core blocks are always shown"
    return "pinned" if block.pinned and block.block_type == BlockType.WORKING else "named by this turn"
