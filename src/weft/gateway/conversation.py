"""One person's conversation in one place, as commands see and change it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weft.gateway.engine import Engine
from weft.providers.base import Provider
from weft.types.context import Context
from weft.types.message import Message
from weft.types.receipt import Receipt
from weft.types.request import Caller, TurnRequest
from weft.types.session import Session

_RESUMABLE = 20


@dataclass(slots=True, kw_only=True)
class Conversation:
    """A session of a caller, the model that answers there, and the recipe. Commands change all three."""

    engine: Engine
    caller: Caller
    session: Session
    provider: Provider
    recipe: str = ""

    async def context(self, text: str) -> Context:
        """Build what the model would see with this message."""
        request = TurnRequest(text=text, caller=self.caller, session=self.session.id, recipe=self.recipe)
        return await self.engine.preview(request, self.provider)

    async def begin_anew(self) -> None:
        """Leave this session as it is and begin an empty one in its place."""
        store = await self.engine.store.get()
        self.session = await store.sessions.new(
            self.caller.channel,
            self.caller.conversation or self.session.conversation,
            self.caller.sender_id,
            agent_id=self.caller.agent_id,
            rule=self.engine.builder.recipe.session,
        )

    async def sessions(self) -> list[Session]:
        """Return the caller's sessions in this channel in which something was said, newest first."""
        caller = self.caller
        sessions = await (await self.engine.store.get()).sessions.list()
        mine = [one for one in sessions if (one.channel, one.sender) == (caller.channel, caller.sender_id)]
        return [one for one in mine if one.title][:_RESUMABLE]

    async def resume(self, session: Session) -> None:
        """Continue in an earlier session."""
        store, rule = await self.engine.store.get(), self.engine.builder.recipe.session
        self.session = await store.sessions.reopen(session.id, rule=rule)

    async def last_receipt(self) -> Receipt | None:
        """Return the receipt of the last answer in this session."""
        turns = (await self.engine.store.get()).turns
        newest = await turns.list(self.session.id, limit=1)
        return await turns.find(newest[0]) if newest else None

    async def newest(self, n: int) -> Sequence[Message]:
        return await (await self.engine.store.get()).messages.newest(self.session.id, n)
