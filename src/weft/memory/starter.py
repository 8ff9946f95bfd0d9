"""The memory blocks that every person begins with, described so that a model knows what belongs where."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from weft.memory.store import MemoryStore
from weft.types.memory import BlockInfo, BlockType, Permission
from weft.types.person import ASSISTANT

PERSONA = "persona"
STARTER_BLOCKS = {
    "human": (
        BlockType.CORE,
        "The person you talk with: name, home, people, work, what they like, how they want to be answered. "
        "Add to it when you learn something lasting about them.",
    ),
    PERSONA: (
        BlockType.CORE,
        "Who you are and how you speak. Change it only when your owner asks for it.",
    ),
    "notes": (
        BlockType.WORKING,
        "Anything else that is worth remembering: plans, decisions, things that were asked to be remembered.",
    ),
}


async def create_starter_blocks(memory: MemoryStore, agent_id: str) -> Sequence[str]:
    """Create the starter blocks of somebody who has no block yet. Returns the labels of the new blocks.

    The persona is the assistant's own: other people's conversations read it, and only the owner's change it.
    Everything is written in one commit, because the first answer to a new person waits for it.
    """
    own, shares, owners = await asyncio.gather(
        memory.list_blocks(agent_id), memory.list_shared_blocks(agent_id), memory.list_blocks(ASSISTANT)
    )
    if agent_id != ASSISTANT and not _has_written(owners):
        await create_starter_blocks(memory, ASSISTANT)
        owners = await memory.list_blocks(ASSISTANT)
    labels = [label for label in STARTER_BLOCKS if label != PERSONA or agent_id == ASSISTANT]
    labels = [] if _has_written(own) else labels
    persona = next((info for info in owners if info.label == PERSONA), None)
    is_new = persona is not None and agent_id != ASSISTANT and persona.id not in [s.block_id for s in shares]
    if labels or is_new:
        blocks = [_starter(agent_id, label) for label in labels]
        await memory.create_missing(*blocks, shared=persona if is_new else None, agent_id=agent_id)
    return labels


def _has_written(blocks: Iterable[BlockInfo]) -> bool:
    """Check for blocks that count: not those that only the system writes, such as the texts of a stream."""
    return any(info.permission != Permission.READ_ONLY for info in blocks)


def _starter(agent_id: str, label: str) -> BlockInfo:
    block_type, description = STARTER_BLOCKS[label]
    return BlockInfo(
        id="", agent_id=agent_id, label=label, description=description, block_type=block_type, pinned=True
    )
