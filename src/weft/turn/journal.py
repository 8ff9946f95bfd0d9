"""The record of one turn: the message first, then each step, and at the end all of it at once in the log.

A turn ends in exactly one way: answered, failed, cancelled, or, if its process dies, interrupted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from weft.store.base import Turns
from weft.types.epoch import Attachment, EpochStep
from weft.types.message import Message
from weft.types.receipt import Receipt
from weft.types.reply import Reply
from weft.types.request import TurnRequest
from weft.types.sent import SentRequest, TurnRecord
from weft.types.session import OpenTurn

CANCELLED = "[The answer was cancelled here.]"
FAILED = "[No answer: {reason}]"
INTERRUPTED = "[No answer: the program ended before it came.]"
SORRY = "I could not answer: {reason}"
WAS_STOPPED = "I was stopped while I worked on this, and did not answer it: “{text}”."
SEND_AGAIN = " Please send it again."
_QUOTED_CHARS = 200


@dataclass(slots=True, kw_only=True)
class Journal:
    """One turn's record. Without a store it remembers nothing beyond the turn.

    `unfinished` holds the pieces of an answer that is not a step yet. The log already has the first `logged`
    messages of the exchange. `epoch` is what the turn adds to the epoch of its session, and `requests` are
    those that it has sent. `sent_steps` are the steps as the last of them showed them. `outside` names the
    text of strangers that the exchange has read.
    """

    request: TurnRequest
    turns: Turns | None = None
    logged: int = 0
    turn_id: str = ""
    message: Message = Message(role="user", content="")
    steps: list[Message] = field(default_factory=list)
    unfinished: list[str] = field(default_factory=list)
    is_open: bool = False
    epoch: EpochStep | None = None
    requests: list[SentRequest] = field(default_factory=list)
    sent_steps: tuple[Message, ...] = ()
    outside: tuple[str, ...] = ()

    @property
    def exchange(self) -> tuple[Message, ...]:
        """The message and what was done since, without what the log already has."""
        return (self.message, *self.request.steps, *self.steps)[self.logged :]

    @property
    def record(self) -> TurnRecord:
        """The requests, and the step of the epoch with the results that were shortened to be sent."""
        step = self.epoch
        if step is not None:
            whole = (*self.request.steps, *self.steps)
            shortened = {
                at: Attachment(content=sent.content)
                for at, (step_, sent) in enumerate(zip(whole, self.sent_steps, strict=False), 1)
                if sent.content != step_.content
            }
            step = replace(step, attachments={**step.attachments, **shortened})
        return TurnRecord(step=step, requests=tuple(self.requests))

    async def begin(self) -> None:
        """Store the message before anything is done with it."""
        request, now = self.request, datetime.now(UTC)
        self.message = Message(
            role="user",
            content=request.text,
            timestamp=now,
            origin=request.origin,
            parts=request.parts,
            outside=request.outside,
        )
        if self.turns is not None:
            begun = self.turns.begin(
                request.caller.session_id,
                request.text,
                inbox_id=request.inbox_id,
                is_known=self.logged > 0,
                outside=request.outside,
            )
            beginning = asyncio.ensure_future(begun)
            try:
                await asyncio.shield(beginning)
            finally:  # a turn that is cancelled here must know its id, so that it can be ended
                self.turn_id = await beginning
                self.is_open = True

    async def step(self, *messages: Message) -> None:
        """Store what was done: calls before they are made, results when they are there."""
        self.steps += messages
        self.unfinished.clear()
        if self.turns is not None:
            await self.turns.step(self.turn_id, *messages)

    async def steered(self, requests: Sequence[TurnRequest]) -> None:
        """Make messages that came meanwhile a part of this turn. Its reply answers them too."""
        if requests:
            now = datetime.now(UTC)
            messages = [
                Message(role="user", content=each.text, timestamp=now, outside=each.outside)
                for each in requests
            ]
            self.steps += messages
            if self.turns is not None:
                inbox_ids = [each.inbox_id for each in requests if each.inbox_id]
                await self.turns.step(self.turn_id, *messages, inbox_ids=inbox_ids)

    async def finish(self, answer: Message | None, receipt: Receipt | None, *, reply: str = "") -> None:
        """Store the whole exchange and its receipt in one transaction.

        `reply` is what the person reads, which may differ from the last message.
        """
        if self.turns is not None:
            messages = (*self.exchange, *((answer,) if answer else ()))
            finished = self.turns.finish(
                self.turn_id, receipt or Receipt(), *messages, reply=reply, record=self.record
            )
            ending = asyncio.ensure_future(finished)
            try:
                await asyncio.shield(ending)
            finally:  # a turn that is cancelled while this is written counts as answered
                self.is_open = ending.done() and (ending.cancelled() or ending.exception() is not None)

    async def cancel(self) -> None:
        """Store what was said until the turn was cancelled. A second cancellation does not undo this."""
        if self.turns is not None and self.is_open:
            self.is_open = False
            text = "".join(self.unfinished)
            note = _note(f"{text}\n\n{CANCELLED}" if text.strip() else CANCELLED)
            note = replace(note, outside=self.outside if text.strip() else ())
            reply = self._without_answer(note.content)
            failed = self.turns.fail(
                self.turn_id, "it was cancelled", *self.exchange, note, reply=reply, record=self.record
            )
            await asyncio.shield(failed)

    async def fail(self, error: str) -> None:
        """Give up. The log gets what tools did; a turn that did nothing leaves no trace there."""
        if self.turns is not None and self.is_open:
            self.is_open = False
            note = (*self.exchange, _note(FAILED.format(reason=error))) if self.steps else ()
            reply = self._without_answer(SORRY.format(reason=error))
            await self.turns.fail(self.turn_id, error, *note, reply=reply, record=self.record)

    def _without_answer(self, reply: str) -> str:
        """Return what the person reads in place of an answer. A message that they did not write is quoted."""
        return reply if self.request.origin == "user" else f"{self.message.content}\n\n{reply}"


def assistant_message(reply: Reply, outside: tuple[str, ...] = ()) -> Message:
    """Return a reply as the message that goes into the history.

    `outside` names the text of strangers that its exchange has read.
    """
    return Message(
        role="assistant",
        content=reply.text,
        tool_calls=reply.tool_calls,
        timestamp=datetime.now(UTC),
        origin="agent",
        provider_data=reply.provider_data,
        outside=outside,
    )


async def settle_interrupted(turns: Turns, session_id: str | None = None) -> Sequence[OpenTurn]:
    """Put turns whose process died into the log, each with a note.

    They are not run again: what their tools did must not be done twice. Of several processes that start at
    the same moment only one gets each turn.

    Returns:
        The turns that this call settled.
    """
    settled = []
    for turn in await turns.list_interrupted(session_id):
        message = Message(
            role="user", content=turn.text, timestamp=turn.at, origin=turn.origin, outside=turn.outside
        )
        steered = [step.content for step in turn.steps if step.role == "user" and step.origin == "user"]
        texts = [" ".join(text.split())[:_QUOTED_CHARS] for text in (turn.text, *steered)]
        reply = WAS_STOPPED.format(text="”, “".join(texts))
        reply += SEND_AGAIN if turn.origin == "user" else ""
        exchange = (*(() if turn.is_known else (message,)), *turn.steps, _note(INTERRUPTED))
        if await turns.settle(turn.id, *exchange, reply=reply):
            settled.append(turn)
    return settled


def _note(text: str) -> Message:
    return Message(role="assistant", content=text, timestamp=datetime.now(UTC), origin="operator")
