"""Roles: messages whose role the recipe does not know become plain text."""

from __future__ import annotations

from dataclasses import replace

from weft.errors import ContextError
from weft.tokens import counter
from weft.types.recipe import Recipe
from weft.types.session import Entry, Tail


def with_known_roles(tail: Tail, recipe: Recipe) -> tuple[Tail, int]:
    """Return a history in roles that the recipe knows, and the number of messages that were changed.

    A message that becomes the user's or the assistant's loses its call id, which belongs to its old role.
    Where the recipe has no role for results, messages lose their calls too.

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
            what = "tool calls" if message.role in known else f"the role {message.role!r}"
            raise ContextError(
                f"Message {tail.messages_before + at + 1} of the history has {what}, "
                f"which the recipe {recipe.name!r} rejects: it knows {', '.join(recipe.history.roles)}."
            )
        role = message.role if message.role in known else recipe.unknown_role
        plain = replace(message, role=role, tool_calls=(), tool_call_id=None, tool_name=None)
        entries[at] = Entry(plain, counter(recipe.tokens).message(plain))
    return replace(tail, entries=entries), len(strangers)
