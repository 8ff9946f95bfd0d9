"""One person's conversation in one place: which session it is in, and which model answers there."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

from weft.gateway.assistant import Assistant, Question, Steering
from weft.providers.base import Provider
from weft.tools.base import Caller
from weft.types.context import Context
from weft.types.message import Message
from weft.types.receipt import Receipt
from weft.types.reply import Done, Event
from weft.types.session import OpenTurn, Session


@dataclass(slots=True, kw_only=True)
class Conversation:
    """What `/new`, `/model` and the rest change. Everything else lasts in the store."""

    app: Assistant
    caller: Caller
    name: str
    session: Session
    provider: Provider
    receipt: Receipt | None = None

    @classmethod
    async def open(cls, app: Assistant, caller: Caller, name: str, *, session_id: str = "") -> Conversation:
        """The conversation of that name, or a session by its id, even one that was closed.

        Raises:
            StoreError: there is no session of that id.
        """
        store, rule = await app.store.get(), app.builder.recipe.session
        caller = replace(caller, conversation=caller.conversation or name)
        if session_id:
            session = await store.sessions.reopen(session_id, rule=rule)
        else:
            place = (caller.channel, name, caller.sender_id)
            found = await store.sessions.find_open(*place, rule=rule)
            session = found or await store.sessions.find_or_create(
                *place, agent_id=caller.agent_id, rule=rule
            )
        return cls(app=app, caller=caller, name=name, session=session, provider=app.provider)

    async def say(
        self,
        text: str,
        *,
        inbox_id: str = "",
        steering: Steering | None = None,
        origin: str = "user",
        blocks: tuple[str, ...] = (),
    ) -> AsyncGenerator[Event]:
        """The answer to a message, as it comes; `steering` gives what is said meanwhile.

        What nobody said has another `origin`. Blocks that are named by their ids are shown this time.
        """
        self.session = await self._open_session()
        question = Question(
            text=text,
            session=self.session.id,
            is_opened=True,
            caller=self.caller,
            provider=self.provider,
            inbox_id=inbox_id,
            steering=steering,
            origin=origin,
            blocks=blocks,
        )
        async with aclosing(self.app.answer(question)) as events:
            async for event in events:
                if isinstance(event, Done):
                    self.receipt = event.reply.receipt
                yield event

    async def context(self, text: str) -> Context:
        """What the model would see with this message."""
        return await self.app.context(text, self.session.id, caller=self.caller, provider=self.provider)

    async def _open_session(self) -> Session:
        """The session that the conversation is in: this one, or the one that follows on it."""
        now = await self.app.session_id(self.session.id, caller=self.caller)
        if now == self.session.id:
            return self.session
        return await (await self.app.store.get()).sessions.get(now)

    async def begin_anew(self) -> None:
        """Leave this session as it is and begin an empty one in its place."""
        store = await self.app.store.get()
        self.session = await store.sessions.new(
            self.caller.channel,
            self.name,
            self.caller.sender_id,
            agent_id=self.caller.agent_id,
            rule=self.app.builder.recipe.session,
        )

    async def last_receipt(self) -> Receipt | None:
        """The receipt of the last answer in this session."""
        turns = (await self.app.store.get()).turns
        newest = await turns.list(self.session.id, limit=1)
        return await turns.find(newest[0]) if newest else None

    async def newest(self, n: int) -> Sequence[Message]:
        return await (await self.app.store.get()).messages.newest(self.session.id, n)

    async def reminders(self) -> list[str]:
        """What is due and to be told here; each once, whoever else looks.

        What was being told when somebody else's program ended is told again: nobody may have read it.
        """
        store, now, here = await self.app.store.get(), time.time(), (self.caller.channel,)
        await store.tasks.fire(now, channels=here)
        told = [delivery.message.text for delivery in await store.mailbox.doubtful(here)]
        while due := await store.mailbox.due(now, here):
            for delivery in due:
                await store.mailbox.sent(delivery.id)
                told.append(delivery.message.text)
        return told

    async def interrupted(self) -> Sequence[OpenTurn]:
        """Messages of this session that were not answered, because the program ended."""
        return await self.app.interrupted(self.session.id)
