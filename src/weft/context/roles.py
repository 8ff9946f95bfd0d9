"""What becomes of a message whose role the recipe does not know."""

from __future__ import annotations

from dataclasses import replace

from weft.errors import ContextError
from weft.types.message import Message
from weft.types.recipe import Recipe
from weft.types.records import Entry, Tail


def with_known_roles(tail: Tail, recipe: Recipe) -> tuple[Tail, int]:
    """The same history in roles that the recipe knows, and how many messages changed their role.

    A message that becomes the user's or the assistant's is plain text from then on: its calls and its
    call id mean nothing without the role they belong to.

    Raises:
        ContextError: the recipe rejects unknown roles, and there is one.
    """
    known = frozenset(recipe.history.roles)
    strangers = [at for at, entry in enumerate(tail.entries) if entry.message.role not in known]
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
        entries[at] = Entry(_as(message, recipe.unknown_role), entries[at].tokens)
    return replace(tail, entries=entries), len(strangers)


def _as(message: Message, role: str) -> Message:
    return replace(message, role=role, tool_calls=(), tool_call_id=None, tool_name=None)
