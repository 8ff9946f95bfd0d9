"""Slash commands about standing instructions."""

from __future__ import annotations

from weft.errors import ConfigError
from weft.gateway.conversation import Conversation
from weft.store.instruction_limits import split_by_limits
from weft.types.escape import one_line

_NONE = "You gave no standing instructions yet: `/always TEXT` adds one."


async def always(conversation: Conversation, rest: str) -> str:
    """Pin a standing instruction."""
    if not rest:
        return "Say what to do always: `/always TEXT`. `/instructions` lists what you said already."
    store = await conversation.engine.store.get()
    added = await store.instructions.add(conversation.caller.sender, rest, pinned=True)
    answer = f"From now on, pinned: {one_line(added.text)} (/undo takes it back)"
    if conversation.engine.shows_instructions(conversation.recipe):
        return answer
    name = conversation.engine.builder_named(conversation.recipe).recipe.name
    return f"{answer}\n\nThe recipe {name} does not show standing instructions: `/recipe weft` does."


async def instructions(conversation: Conversation, rest: str) -> str:
    """List the standing instructions, or remove one by its number or the start of its id."""
    store, sender = await conversation.engine.store.get(), conversation.caller.sender
    if not rest:
        every = await store.instructions.list(sender)
        withheld = {one.id for one in split_by_limits(every)[1]}
        lines = [
            f"{number}. {one_line(one.text)} ({_about(one.pinned, one.id in withheld)}"
            f"{f', {one.created_at:%Y-%m-%d}' if one.created_at else ''})"
            for number, one in enumerate(every, 1)
        ]
        return "\n".join((*lines, "", "`/instructions remove NUMBER` removes one.")) if lines else _NONE
    verb, _, which = rest.partition(" ")
    if verb != "remove" or not which.strip():
        raise ConfigError(
            f"`/instructions` does not know {rest!r}: it takes `remove NUMBER`, or nothing to list them."
        )
    removed = await store.instructions.remove(sender, which.strip())
    return f"Removed: {one_line(removed.text)} (/undo brings it back)"


def _about(pinned: bool, is_withheld: bool) -> str:
    return "pinned" if pinned else "recognized, not shown for lack of room" if is_withheld else "recognized"
