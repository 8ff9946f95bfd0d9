"""Memory blocks, each between its own tags."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from weft.sources.base import Request, nothing, piece
from weft.types.escape import inert
from weft.types.memory import BlockType, RenderedBlock
from weft.types.recipe import Layer
from weft.types.section import Offer, Origin, Withheld


async def offer(request: Request, layer: Layer) -> Offer:
    """Core blocks always; working blocks when pinned; any other only when this turn names it."""
    if request.blocks is None:
        return nothing(layer)
    blocks = await request.blocks
    shown = [block for block in blocks if _belongs(block, layer, request.batch_blocks)]
    shows = {"descriptions": _descriptions(request, layer), "schemas": _schemas(request, layer)}
    pieces = tuple(
        replace(
            piece(layer, "", title=block.label, why=_why(block), origin=Origin.AGENT),
            text=render_block(block, **shows),
        )
        for block in shown
    )
    return Offer(
        layer=layer.source,
        pieces=pieces,
        worth=_worth(shown, request.batch_blocks),
        withheld=_unknown(blocks, layer, request),
    )


def _worth(shown: Sequence[RenderedBlock], batch: frozenset[str]) -> tuple[float, ...]:
    """Where a turn names blocks, these give way last: it is about them."""
    if not batch:
        return ()
    return tuple(float(len(shown) * (block.id in batch) - at) for at, block in enumerate(shown))


def _belongs(block: RenderedBlock, layer: Layer, batch: frozenset[str]) -> bool:
    if block.block_type == BlockType.CORE:
        return layer.kind == "core"
    return layer.kind == "working" and (block.id in batch or block.is_always_shown)


def _unknown(blocks: Sequence[RenderedBlock], layer: Layer, request: Request) -> tuple[Withheld, ...]:
    """The blocks that this turn names but the agent cannot read."""
    if layer.kind != "working":
        return ()
    known = {block.id for block in blocks}
    reason = "this agent has no block with this id"
    lost = sorted(request.batch_blocks - known)
    return tuple(Withheld(title=block_id, tokens=0, reason=reason) for block_id in lost)


def render_block(block: RenderedBlock, *, descriptions: bool = True, schemas: bool = False) -> str:
    """A block as the model sees it; its content cannot close its tag or open another."""
    label = _attribute(block.label)
    shared = f' shared_from="{_attribute(block.shared_from)}"' if block.shared_from else ""
    about = f"{inert(block.description)}\n\n" if descriptions and block.description else ""
    if schemas and block.schema:
        compact = json.dumps(dict(block.schema), ensure_ascii=False, separators=(",", ":"))
        about += f"Schema: {inert(compact)}\n"
    return (
        f'<block:{label} permission="{block.permission}"{shared}>\n'
        f"{about}{inert(block.content)}\n</block:{label}>"
    )


def _attribute(text: str) -> str:
    """A label that cannot end its tag."""
    for mark, harmless in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;")):
        text = text.replace(mark, harmless)
    return " ".join(text.split())


def _why(block: RenderedBlock) -> str:
    if block.block_type == BlockType.CORE:
        return "core blocks are always shown"
    return "pinned" if block.pinned and block.block_type == BlockType.WORKING else "named by this turn"


def _descriptions(request: Request, layer: Layer) -> bool:
    chosen = request.include_descriptions
    return layer.include_descriptions if chosen is None else chosen


def _schemas(request: Request, layer: Layer) -> bool:
    chosen = request.include_schemas
    return layer.include_schemas if chosen is None else chosen
