"""The assistant as an object: sessions and turns over the parts that the settings chose."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Protocol

from weft.gateway.clean import clean
from weft.memory.store import MemoryStore
from weft.providers.base import Provider, collected
from weft.providers.choose import Choice
from weft.store.base import Activity, Sessions, Store, Turns
from weft.tools.base import Caller, Tool
from weft.tools.registry import ToolRegistry
from weft.turn.act import ToolLimits
from weft.turn.build import ContextBuilder
from weft.turn.journal import settle_interrupted
from weft.turn.run import Turn, prepare, run_turn
from weft.types.context import Context
from weft.types.limits import ModelInfo
from weft.types.message import Message
from weft.types.recipe import Recipe
from weft.types.records import OpenTurn
from weft.types.reply import Done, Event, Reply
from weft.types.rules import ToolRule

OWNER = Caller(agent_id="weft", channel="app", sender_id="owner")
"""Whose messages these are if nobody says otherwise."""


class Kept(Store, Protocol):
    """A store with all that turns need of it."""

    @property
    def memory(self) -> MemoryStore: ...

    @property
    def sessions(self) -> Sessions: ...

    @property
    def turns(self) -> Turns: ...

    @property
    def activity(self) -> Activity: ...


class KeptLazily(Protocol):
    """A store that is opened when it is first needed."""

    async def find(self) -> Kept | None:
        """The store, if its file is there."""
        ...

    async def get(self) -> Kept:
        """The store; its file is made if there is none."""
        ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class App:
    """An assistant as an object. What is said in a session is kept in the store of the settings."""

    choice: Choice
    provider: Provider
    builder: ContextBuilder
    store: KeptLazily
    tools: ToolRegistry = field(default_factory=ToolRegistry)
    own_tools: Callable[[Kept, Recipe], Sequence[Tool]] = lambda store, recipe: ()
    rules: tuple[ToolRule, ...] = ()
    limits: ToolLimits = ToolLimits()
    ratios: dict[str, float] = field(default_factory=dict)

    async def ask(self, text: str, session: str | None = None, *, caller: Caller = OWNER) -> Reply:
        """The reply to a message. With a session it has the history of that session."""
        return await collected(self.stream(text, session=session, caller=caller))

    async def stream(
        self,
        text: str,
        session: str | None = None,
        *,
        history: Sequence[Message] = (),
        caller: Caller = OWNER,
    ) -> AsyncGenerator[Event]:
        """The reply as it comes; the last event is `Done`. A given history is shown but not kept.

        A session is known by its id; one that is not there yet is made.
        """
        turn = await self._turn(session, history, caller)
        async with aclosing(run_turn(turn, clean(text).text)) as events:
            async for event in events:
                if isinstance(event, Done) and event.reply.receipt and event.reply.receipt.ratio:
                    self.ratios[event.reply.receipt.model] = event.reply.receipt.ratio
                yield event

    async def context(
        self,
        text: str,
        session: str | None = None,
        *,
        history: Sequence[Message] = (),
        caller: Caller = OWNER,
    ) -> Context:
        """What the model would see. No model is asked."""
        turn = await self._turn(session, history, caller, made=False)
        return await prepare(turn, clean(text).text)

    async def interrupted(self, session: str | None = None) -> Sequence[OpenTurn]:
        """Messages that were not answered because the program ended; they are in the log now, with a note."""
        store = await self.store.find()
        return () if store is None else await settle_interrupted(store.turns, session)

    async def close(self) -> None:
        await self.provider.close()
        await self.store.close()

    async def _turn(
        self, session: str | None, history: Sequence[Message], caller: Caller, *, made: bool = True
    ) -> Turn:
        """What a turn works with: memory for everybody who has some, a place in the log with a session."""
        recipe, builder, tools, turns = self.builder.recipe, self.builder, self.tools, None
        reads = session or recipe.ask == "layers"
        store = await self.store.get() if session and made else await self.store.find() if reads else None
        if store is not None:
            builder = builder.with_store(store).with_activity(store.activity)
            if session:
                caller = replace(caller, session_id=await self._session(store, session, caller, made=made))
                turns, tools = store.turns, tools.joined(self.own_tools(store, recipe))
        if history:
            builder = builder.with_messages(history)
        return Turn(
            builder=builder.for_agent(caller.agent_id)
            .for_sender(caller.channel, caller.sender_id)
            .with_session(caller.session_id)
            .with_model_info(await self._model(store)),
            provider=self.provider,
            provider_reason=self.choice.reason,
            tools=tools,
            rules=self.rules,
            limits=self.limits,
            caller=caller,
            turns=turns,
        )

    async def _session(self, store: Kept, session: str, caller: Caller, *, made: bool) -> str:
        """The id of an open session: that one, or the one the recipe's rule leads to."""
        found = await store.sessions.find(session)
        if (found is not None and found.closed_at is None) or not made:
            return session
        rule = self.builder.recipe.session
        new = await store.sessions.find_or_create(
            caller.channel, session, caller.sender_id, agent_id=caller.agent_id, rule=rule
        )
        return new.id

    async def _model(self, store: Kept | None) -> ModelInfo:
        """The model that answers, with what is known of its tokens."""
        info = self.provider.info
        if info.id not in self.ratios:
            learned = await store.turns.ratio(info.id) if store is not None else None
            self.ratios[info.id] = learned or info.tokens_ratio
        return replace(info, tokens_ratio=self.ratios[info.id])
