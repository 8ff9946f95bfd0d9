"""What becomes of a message whose role the recipe does not know."""

from __future__ import annotations

from dataclasses import replace

from weft.errors import ContextError
from weft.types.message import Message
from weft.types.recipe import Recipe
from weft.types.records import Entry, Tail


def with_known_roles(tail: Tail, recipe: Recipe) -> tuple[Tail, int]:
    """The same history in roles that the recipe knows, and how many messages had to change.

    A message that becomes the user's or the assistant's is plain text from then on: its call id means
    nothing without the role it belongs to. So it is with calls, where the recipe knows no results.

    Raises:
        ContextError: the recipe rejects unknown roles, and there is one.
    """
    known = frozenset(recipe.history.roles)
    calls_known = "tool" in known
    strangers = [
        at
        for at, entry in enumerate(tail.entries)
        if entry.message.role not in known or (entry.message.tool_calls and not calls_known)
    ]
    if not strangers or recipe.unknown_role == "keep":
        return tail, 0
    entries = list(tail.entries)
    for at in strangers:
        message = entries[at].message
        if recipe.unknown_role == "reject":
            raise ContextError(
                f"Message {tail.messages_before + at + 1} of the history has the role {message.role!r}, "
                f"which the recipe {recipe.name!r} rejects: use one of {', '.join(recipe.history.roles)}."
            )
        role = message.role if message.role in known else recipe.unknown_role
        entries[at] = Entry(_as(message, role), entries[at].tokens)
    return replace(tail, entries=entries), len(strangers)


def _as(message: Message, role: str) -> Message:
    return replace(message, role=role, tool_calls=(), tool_call_id=None, tool_name=None)
