"""What comes back from a model: a reply, and the events while it is on its way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from weft.types.codec import Json
from weft.types.message import ToolCall
from weft.types.receipt import Receipt, Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply(Json):
    """One complete answer. The receipt is there when a turn asked for it.

    `notes` says what was repaired in the request so that the provider takes it. `changes` are the changes of
    memory in this turn, each in a few words for the person, and `not_done` what the model wanted to do and
    was not allowed to without them. `turn_id` and `session_id` name the stored turn
    and its session; a command has a session and no turn. `folds` says what of the conversation is no longer
    shown word for word, or is about to be.
    """

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    stop_reason: str = "end"
    usage: Usage | None = None
    model: str = ""
    provider_data: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    receipt: Receipt | None = field(default=None, compare=False)
    changes: tuple[str, ...] = ()
    not_done: tuple[str, ...] = ()
    turn_id: str = ""
    session_id: str = ""
    folds: tuple[str, ...] = ()

    @property
    def notice(self) -> str:
        """Lines for the person: changes of memory, what was not done without them, and folds."""
        lines = [f"Not done: needs you: {wanted}" for wanted in self.not_done]
        if self.changes:
            line, what = "; ".join(self.changes), "it" if len(self.changes) == 1 else "the last"
            lines.insert(0, f"{line[:1].upper()}{line[1:]} (/undo takes {what} back)")
        lines += self.folds
        return "\n".join(lines)

    @property
    def text_with_notice(self) -> str:
        """The text as a person reads it in a channel that shows text alone."""
        return "\n\n".join(part for part in (self.text, self.notice) if part)


@dataclass(frozen=True, slots=True)
class TurnStarted:
    """The message is stored and its turn runs. Always the first event of a turn."""

    session_id: str = ""
    turn_id: str = ""


@dataclass(frozen=True, slots=True)
class RequestSent:
    """A provider sends a request: its JSON as the vendor gets it. Only the turn itself reads this event.

    `body` is the request as bytes, where the provider wrote them.
    """

    payload: Mapping[str, Any]
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Reading:
    """The model is reading its context: so many of so many tokens."""

    done: int
    total: int


@dataclass(frozen=True, slots=True)
class TextDelta:
    """The next few characters of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class Done:
    """The answer is complete. Always the last event of a provider, and of a turn."""

    reply: Reply


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """A tool is about to run."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class ToolFinished:
    """What came of a call, as the model reads it."""

    call: ToolCall
    result: str
    failed: bool = False


Event = TurnStarted | RequestSent | Reading | TextDelta | ToolStarted | ToolFinished | Done
