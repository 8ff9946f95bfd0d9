"""How one turn is kept: the message first, then each step, and at the end all of it at once in the log.

A turn ends in exactly one way: answered, failed, cancelled, or, if its process dies, interrupted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from weft.store.base import Turns
from weft.types.delivery import Waiting
from weft.types.message import Message
from weft.types.receipt import Receipt
from weft.types.reply import Reply
from weft.types.session import OpenTurn

CANCELLED = "[The answer was cancelled here.]"
FAILED = "[No answer: {reason}]"
INTERRUPTED = "[No answer: the program ended before it came.]"
SORRY = "I could not answer: {reason}"
WAS_STOPPED = "I was stopped while I worked on this, and did not answer it: “{text}”."
SEND_AGAIN = " Please send it again."
_SHOWN = 200


@dataclass(slots=True, kw_only=True)
class Journal:
    """One turn's record. Without a store it remembers nothing beyond the turn.

    `unfinished` are the pieces of an answer that is not a step yet. `brought` are steps that the caller did
    before; `logged` of the message and these are in the log already.
    """

    turns: Turns | None = None
    session_id: str = ""
    inbox_id: str = ""
    origin: str = "user"
    turn_id: str = ""
    asked: Message = Message(role="user", content="")
    brought: tuple[Message, ...] = ()
    logged: int = 0
    steps: list[Message] = field(default_factory=list)
    unfinished: list[str] = field(default_factory=list)
    is_open: bool = False

    @property
    def exchange(self) -> tuple[Message, ...]:
        """The message and what was done since, without what the log has already."""
        return (self.asked, *self.brought, *self.steps)[self.logged :]

    async def begin(self, text: str) -> None:
        """Keep the message before anything is done with it."""
        self.asked = Message(role="user", content=text, timestamp=datetime.now(UTC), origin=self.origin)
        if self.turns is not None:
            is_known = self.logged > 0
            begun = self.turns.begin(self.session_id, text, inbox_id=self.inbox_id, is_known=is_known)
            beginning = asyncio.ensure_future(begun)
            try:
                await asyncio.shield(beginning)
            finally:  # who is stopped meanwhile must know the turn, to end it
                self.turn_id = await beginning
                self.is_open = True

    async def step(self, *messages: Message) -> None:
        """Keep what was done: calls before they are made, results when they are there."""
        self.steps += messages
        self.unfinished.clear()
        if self.turns is not None:
            await self.turns.step(self.turn_id, *messages)

    async def steered(self, waiting: Sequence[Waiting]) -> None:
        """Take over what the person wrote meanwhile: it is part of this turn now, and answered with it."""
        if waiting:
            now = datetime.now(UTC)
            said = [Message(role="user", content=each.message.text, timestamp=now) for each in waiting]
            self.steps += said
            if self.turns is not None:
                await self.turns.step(self.turn_id, *said, inbox_ids=[each.id for each in waiting])

    async def finish(self, answer: Message | None, receipt: Receipt | None, *, reply: str = "") -> None:
        """Both sides of the exchange, what was done between them, and the receipt: at once.

        `reply` is what the person reads, which the last message need not be.
        """
        if self.turns is not None:
            said = (*self.exchange, *((answer,) if answer else ()))
            finished = self.turns.finish(self.turn_id, receipt or Receipt(), *said, reply=reply)
            ending = asyncio.ensure_future(finished)
            try:
                await asyncio.shield(ending)
            finally:  # who is stopped while this is written leaves an answered turn
                self.is_open = ending.done() and (ending.cancelled() or ending.exception() is not None)

    async def cancel(self) -> None:
        """Keep what was said until somebody stopped it. A second stop does not undo this."""
        if self.turns is not None and self.is_open:
            self.is_open = False
            text = "".join(self.unfinished)
            note = _note(f"{text}\n\n{CANCELLED}" if text.strip() else CANCELLED)
            await asyncio.shield(
                self.turns.fail(
                    self.turn_id, "it was cancelled", *self.exchange, note, reply=self._told(note.content)
                )
            )

    async def fail(self, error: str) -> None:
        """Give up. What tools did is in the log; a turn that did nothing leaves no trace there."""
        if self.turns is not None and self.is_open:
            self.is_open = False
            note = (*self.exchange, _note(FAILED.format(reason=error))) if self.steps else ()
            reply = self._told(SORRY.format(reason=error))
            await self.turns.fail(self.turn_id, error, *note, reply=reply)

    def _told(self, reply: str) -> str:
        """What is said in place of an answer; who did not ask is also told what it would have been to."""
        return reply if self.origin == "user" else f"{self.asked.content}\n\n{reply}"


def said(reply: Reply) -> Message:
    """A reply as the message that goes into the history."""
    return Message(
        role="assistant",
        content=reply.text,
        tool_calls=reply.tool_calls,
        timestamp=datetime.now(UTC),
        origin="agent",
        provider_data=reply.provider_data,
    )


async def settle_interrupted(turns: Turns, session_id: str | None = None) -> Sequence[OpenTurn]:
    """Put turns whose process died into the log, each with a note, and tell which they were.

    They are not asked again: what their tools did may not be done twice. Of several processes that start at
    the same moment only one gets each.
    """
    settled = []
    for turn in await turns.interrupted(session_id):
        asked = Message(role="user", content=turn.text, timestamp=turn.at, origin=turn.origin)
        steered = [step.content for step in turn.steps if step.role == "user" and step.origin == "user"]
        texts = [" ".join(text.split())[:_SHOWN] for text in (turn.text, *steered)]
        told = WAS_STOPPED.format(text="”, “".join(texts))
        told += SEND_AGAIN if turn.origin == "user" else ""
        said = (*(() if turn.is_known else (asked,)), *turn.steps, _note(INTERRUPTED))
        if await turns.settle(turn.id, *said, reply=told):
            settled.append(turn)
    return settled


def _note(text: str) -> Message:
    return Message(role="assistant", content=text, timestamp=datetime.now(UTC), origin="operator")
