"""What a program asks for over a line of its own: a message, with all that it brings along."""

from __future__ import annotations

from dataclasses import dataclass

from weft.types.message import Message, ToolDefinition


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A message from a program, with what it brings along.

    `history` and `steps` are what the program says was said before and since the message; a program that
    holds the history itself, even an empty one, sees it shown in place of a session's. Tools given here run
    at the program. `is_opened` says that `session` is the id of an open session of this sender's.
    """

    text: str
    session: str = ""
    is_opened: bool = False
    sender: str = "owner"
    recipe: str = ""
    model: str = ""
    instructions: str = ""
    history: tuple[Message, ...] | None = None
    steps: tuple[Message, ...] = ()
    tools: tuple[ToolDefinition, ...] = ()
