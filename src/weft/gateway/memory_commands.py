"""Slash commands about memory, facts, tasks and skills."""

from __future__ import annotations

from weft.errors import PermissionDenied, StoreError, UnknownName
from weft.gateway.conversation import Conversation
from weft.providers.base import describe
from weft.tools.tasks import line
from weft.types.escape import fenced, one_line

_SHOWN = 60


async def show_facts(conversation: Conversation, rest: str) -> str:
    """List the facts about the person."""
    store = await conversation.engine.store.get()
    facts = await store.facts.list(conversation.caller.sender)
    lines = [f"- **{one_line(fact.key)}**: {one_line(fact.value)}" for fact in facts]
    return "\n".join(lines) or "I know nothing about you yet."


async def forget_fact(conversation: Conversation, rest: str) -> str:
    """Delete a fact about the person."""
    if not rest:
        return "Say what to forget: `/forget KEY`. `/facts` lists the keys."
    store = await conversation.engine.store.get()
    if not await store.facts.delete(conversation.caller.sender, rest):
        raise StoreError(f"I know nothing about you under {rest!r}: `/facts` lists what I know.")
    return f"Forgotten: {one_line(rest)}."


async def show_memory(conversation: Conversation, rest: str) -> str:
    """List the memory blocks, or show one."""
    store, agent = await conversation.engine.store.get(), conversation.caller.agent_id
    if rest:
        document = await store.memory.find_usable_block(agent, rest)
        if document is None:
            raise UnknownName(f"There is no block {rest!r}: `/memory` lists them.")
        text = document.render()
        return fenced(text) if text else "(empty)"
    blocks = await store.memory.rendered_blocks(agent)
    lines = [
        f"- **{one_line(block.label)}** ({block.block_type}, {len(block.content)} characters): "
        f"{one_line(block.content)[:_SHOWN]}"
        for block in blocks
    ]
    return "\n".join(lines) or "There are no memory blocks yet."


async def show_tasks(conversation: Conversation, rest: str) -> str:
    """List the person's pending tasks."""
    store = await conversation.engine.store.get()
    tasks = await store.tasks.list(conversation.caller.sender)
    return "\n".join(f"- {line(task)}" for task in tasks) or "Nothing is pending."


async def cancel_task(conversation: Conversation, rest: str) -> str:
    """Cancel a task by the start of its id."""
    if not rest:
        return "Say which one: `/cancel ID`. `/tasks` lists them."
    store = await conversation.engine.store.get()
    return f"Cancelled {(await store.tasks.cancel(conversation.caller.sender, rest))[:8]}."


async def show_last(conversation: Conversation, rest: str) -> str:
    """Show the last answer again."""
    answers = [m.content for m in await conversation.newest(50) if m.role == "assistant" and m.content]
    return answers[-1] if answers else "Nothing was answered yet."


async def show_skills(conversation: Conversation, rest: str) -> str:
    """List the skills, and why some are not used."""
    builder = conversation.engine.builder
    skills = await builder.files.load_skills(builder.recipe)
    lines = [f"- **{one_line(one.name)}**: {one_line(one.description)}" for one in skills.usable]
    lines += [f"- {one_line(one.name)} is not used: {one_line(one.reason)}" for one in skills.left_out]
    return "\n".join(lines) or "There are no skills."


async def show_status(conversation: Conversation, rest: str) -> str:
    """Show the session, the model, the recipe and the size of the next context."""
    info, engine = await describe(conversation.provider), conversation.engine
    place = f" at {info.address}" if info.address else ""
    receipt = (await conversation.context("(your next message)")).receipt
    lines = [
        f"- session `{conversation.session.id}`, begun {conversation.session.created_at:%Y-%m-%d %H:%M}",
        f"- {info.provider} answers with `{info.id}`{place}: {engine.choice.why}",
        f"- recipe {engine.builder.recipe.name}",
    ]
    if receipt is not None:
        lines.append(f"- the next message would take {receipt.total_tokens:,} of {receipt.limit:,} tokens")
    return "\n".join(lines)


async def reload(conversation: Conversation, rest: str) -> str:
    """Read instructions, memory files and skills again with the next message, for everybody."""
    if not conversation.caller.is_owner:
        raise PermissionDenied("Only the owner of this assistant may do that: it changes it for everybody.")
    conversation.engine.builder.reload()
    return "Instructions, memory files and skills are read anew with the next message."
