"""The command `/undo`: it takes the changes of memory back, the newest first."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from functools import partial

from weft.errors import UnknownName
from weft.gateway.conversation import Conversation
from weft.memory.base import Store
from weft.memory.history import undoable
from weft.memory.store import MemoryStore
from weft.types.escape import fenced, one_line
from weft.types.instruction import StandingInstruction
from weft.types.memory import Fact, Permission
from weft.types.person import agent_behind
from weft.types.request import Caller

Undo = Callable[[], Awaitable[str]]
"""A function that takes a change back. It returns what to say about it, or nothing if there was no change."""


async def undo_memory(conversation: Conversation, rest: str) -> str:
    """Undo the last change of a block; without a label, of any block, fact or standing instruction."""
    store, caller = await conversation.engine.store.get(), conversation.caller
    changes = await _block_changes(store.memory.by(caller.person, "/undo"), caller.agent_id, rest)
    fact = None if rest else await store.facts.last_change(caller.sender)
    if fact is not None and (changed_at := fact.ended_at or fact.created_at):
        changes.append((changed_at, partial(_undo_fact, store, caller, fact)))
    changes += [] if rest else await _instruction_changes(store, caller)
    for _, undo in sorted(changes, key=lambda change: change[0], reverse=True):
        if answer := await undo():
            return answer
    return f"There is nothing to undo in {one_line(rest)}." if rest else "There is nothing to undo."


async def _block_changes(memory: MemoryStore, agent: str, label: str) -> list[tuple[datetime, Undo]]:
    """Return the newest change of each block that the person may change, or of one block.

    The creation of a block counts as a change if the model created it.
    """
    blocks = await memory.list_blocks(agent)
    if label and label not in (info.label for info in blocks):
        raise UnknownName(f"There is no block {label!r}: `/memory` lists them.")
    changes: list[tuple[datetime, Undo]] = []
    for info in blocks:
        if info.permission == Permission.READ_ONLY or label not in ("", info.label):
            continue
        history = await memory.block_history(agent, info.label)
        change, first = undoable(history), history[0]
        if change is not None and change.at is not None:
            changes.append((change.at, partial(_undo_edit, memory, agent, info.label)))
        elif change is None and agent_behind(first.author) == agent and first.at is not None:
            changes.append((first.at, partial(_remove, memory, agent, info.label)))
    return changes


async def _undo_edit(memory: MemoryStore, agent: str, label: str) -> str:
    # The person asks for it, so that a block which wants their consent has it.
    if not await memory.undo_block(agent, label, is_system=True):
        return ""
    text = await memory.get_rendered_content(agent, label)
    now = fenced(text) if text else "(empty)"
    return f"The last change of **{one_line(label)}** was taken back. It reads now:\n\n{now}"


async def _remove(memory: MemoryStore, agent: str, label: str) -> str:
    await memory.delete_block(agent, label, is_system=True)
    return f"The memory block **{one_line(label)}** was removed again."


async def _instruction_changes(store: Store, caller: Caller) -> list[tuple[datetime, Undo]]:
    instruction = await store.instructions.last_change(caller.sender)
    if instruction is not None and (changed_at := instruction.ended_at or instruction.created_at):
        return [(changed_at, partial(_undo_instruction, store, caller, instruction))]
    return []


async def _undo_instruction(store: Store, caller: Caller, instruction: StandingInstruction) -> str:
    """Take the newest change of an instruction back: a new one no longer holds, a removed one does again."""
    if not await store.instructions.undo(caller.sender, instruction.id):
        return ""
    holds = "holds again" if instruction.ended_at else "was taken back, and no longer holds"
    return f"The standing instruction “{one_line(instruction.text)}” {holds}."


async def _undo_fact(store: Store, caller: Caller, fact: Fact) -> str:
    """Take the newest change of a fact back: its value before counts again, or none."""
    value = await store.facts.undo(caller.sender, fact.key)
    now = f"It is {one_line(value)} again." if value else "Nothing is known under that key now."
    return f"The last change of the fact **{one_line(fact.key)}** was taken back. {now}"
