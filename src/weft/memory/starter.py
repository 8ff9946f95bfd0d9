"""The memory blocks that every person begins with, described so that a model knows what belongs where."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from weft.errors import StoreError
from weft.memory.store import MemoryStore
from weft.types.memory import BlockType, Permission
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
    Blocks that only the system writes, such as the texts of a stream, do not count.
    """
    labels = [label for label in STARTER_BLOCKS if label != PERSONA or agent_id == ASSISTANT]
    if any(info.permission != Permission.READ_ONLY for info in await memory.list_blocks(agent_id)):
        labels = []
    for label in labels:
        block_type, description = STARTER_BLOCKS[label]
        with suppress(StoreError):  # another turn of the same person has just created it
            await memory.create_block(
                agent_id, label, description=description, block_type=block_type, pinned=True, is_system=True
            )
    if agent_id != ASSISTANT:
        await _share_persona(memory, agent_id)
    return labels


async def _share_persona(memory: MemoryStore, agent_id: str) -> None:
    """Let somebody read the persona, which is created if the owner has no block yet."""
    await create_starter_blocks(memory, ASSISTANT)
    shared = {(share.owner, share.label) for share in await memory.list_shared_blocks(agent_id)}
    if (ASSISTANT, PERSONA) not in shared and await memory.get_block(ASSISTANT, PERSONA) is not None:
        await memory.share_block(ASSISTANT, PERSONA, agent_id, Permission.READ_ONLY, is_system=True)
