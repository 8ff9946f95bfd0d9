"""The assistant as an object: sessions and turns over the parts that the settings chose."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Protocol

from weft.errors import ConfigError
from weft.gateway.clean import clean
from weft.gateway.recall_gate import needs_of
from weft.memory.base import Store
from weft.providers.base import Provider, collected
from weft.providers.choose import Choice
from weft.tools.base import Caller, Tool
from weft.tools.registry import ToolRegistry
from weft.turn.act import ToolLimits
from weft.turn.build import ContextBuilder
from weft.turn.classify import RouteSettings
from weft.turn.fold import Summarizer, nobody, summarizer
from weft.turn.journal import settle_interrupted
from weft.turn.run import Turn, prepare, run_turn
from weft.types.context import Context
from weft.types.delivery import Waiting
from weft.types.limits import ModelInfo
from weft.types.message import Message, ToolDefinition
from weft.types.recipe import Recipe
from weft.types.reply import Done, Event, Reply
from weft.types.rules import ToolRule
from weft.types.session import OpenTurn, Session, SessionRule

OWNER = Caller(agent_id="weft", channel="app", sender_id="owner")
"""Whose messages these are if nobody says otherwise."""


Steering = Callable[[], Sequence[Waiting]]
"""What a person wrote since a turn began and that it should know."""


Kept = Store


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
class Question:
    """A message with all that decides how it is answered.

    A program may bring instructions of its own, tools that run at the program, and the steps that were done
    for the message before; `logged` of the message and these are in the log already. `is_opened` says that
    `session` is the id of an open session of the caller's, and needs no look. A message from the inbox is
    answered there by whatever ends the turn; `steering` gives what comes in while it runs.
    What nobody said has another `origin`; `blocks` are the ids of memory blocks that are shown this time.
    """

    text: str
    session: str | None = None
    is_opened: bool = False
    history: Sequence[Message] | None = None
    caller: Caller = OWNER
    provider: Provider
    inbox_id: str = ""
    instructions: str = ""
    tools: tuple[ToolDefinition, ...] = ()
    steps: tuple[Message, ...] = ()
    logged: int = 0
    steering: Steering | None = None
    origin: str = "user"
    blocks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Assistant:
    """An assistant as an object. What is said in a session is kept in the store of the settings."""

    choice: Choice
    provider: Provider
    builder: ContextBuilder
    store: KeptLazily
    tools: ToolRegistry = field(default_factory=ToolRegistry)
    own_tools: Callable[[Kept, Recipe], Sequence[Tool]] = lambda store, recipe: ()
    rules: tuple[ToolRule, ...] = ()
    limits: ToolLimits = ToolLimits()
    routing: RouteSettings = RouteSettings()
    models: Callable[[str, ModelInfo], Provider] | None = None
    others: dict[str, Provider] = field(default_factory=dict)
    ratios: dict[str, float] = field(default_factory=dict)
    made: dict[str, Sequence[Tool]] = field(default_factory=dict)

    async def ask(self, text: str, session: str | None = None, *, caller: Caller = OWNER) -> Reply:
        """The reply to a message. With a session it has the history of that session."""
        return await collected(self.stream(text, session=session, caller=caller))

    async def stream(
        self,
        text: str,
        session: str | None = None,
        *,
        history: Sequence[Message] | None = None,
        caller: Caller = OWNER,
        provider: Provider | None = None,
    ) -> AsyncGenerator[Event]:
        """The reply as it comes; the last event is `Done`. A given history is shown but not kept.

        A session is known by its id; one that is not there yet is made.
        """
        question = Question(
            text=text,
            session=session,
            history=history,
            caller=caller,
            provider=provider or self.provider,
        )
        async with aclosing(self.answer(question)) as events:
            async for event in events:
                yield event

    async def answer(self, question: Question) -> AsyncGenerator[Event]:
        """The reply to a question that may bring more than its text, as it comes.

        A message from the inbox is answered there by whatever ends the turn.
        """
        text = clean(question.text).text
        async with aclosing(run_turn(await self._turn(question), text)) as events:
            async for event in events:
                if isinstance(event, Done) and event.reply.receipt and event.reply.receipt.ratio:
                    self.ratios[event.reply.receipt.model] = event.reply.receipt.ratio
                yield event

    async def context(
        self,
        text: str,
        session: str | None = None,
        *,
        history: Sequence[Message] | None = None,
        caller: Caller = OWNER,
        provider: Provider | None = None,
    ) -> Context:
        """What the model would see. No model is asked."""
        asked = provider or self.provider
        return await self.look(
            Question(text=text, session=session, history=history, caller=caller, provider=asked)
        )

    async def look(self, question: Question) -> Context:
        """What the model would see with a question that may bring more than its text."""
        text = clean(question.text).text
        return await prepare(await self._turn(question, made=False), text)

    async def session_id(self, name: str, *, caller: Caller = OWNER) -> str:
        """The id of the open session that a name or an id leads this caller to; made if there is none."""
        question = Question(text="", session=name, caller=caller, provider=self.provider)
        return await self._session(await self.store.get(), question, made=True)

    async def interrupted(self, session: str | None = None) -> Sequence[OpenTurn]:
        """Messages that were not answered because the program ended; they are in the log now, with a note."""
        store = await self.store.find()
        return () if store is None else await settle_interrupted(store.turns, session)

    def provider_named(self, name: str, now: ModelInfo) -> Provider:
        """Another model: `PROVIDER`, `PROVIDER:MODEL`, or a model of the provider that answers now.

        Raises:
            ConfigError: there is none of that name.
        """
        if self.models is None:
            raise ConfigError("This assistant was given its model by a program: it cannot be changed here.")
        place = f"{now.provider} {name}"  # the same name is another model at another provider
        if place not in self.others:
            self.others[place] = self.models(name, now)
        return self.others[place]

    async def close(self) -> None:
        """End what runs: models, servers of tools, the store. What fails to end does not keep the others."""
        async with AsyncExitStack() as ending:
            ending.push_async_callback(self.store.close)
            ending.push_async_callback(self.tools.close)
            for provider in (*self.others.values(), self.provider):
                ending.push_async_callback(provider.close)

    async def _turn(self, question: Question, *, made: bool = True) -> Turn:
        """What a turn works with: memory where there is some, a place in the log with a session."""
        store, caller, tools = await self._store(question, made=made), question.caller, self.tools
        builder = self.builder
        if store is not None:
            builder = builder.with_store(store).with_activity(store.activity)
            tools = tools.joined(self._own(store)) if question.session else tools
            caller = replace(caller, session_id=await self._session(store, question, made=made))
        if question.history is not None:
            builder = builder.with_messages(question.history)
        if question.instructions:
            builder = builder.with_base_instructions(question.instructions)
        if question.blocks:
            builder = builder.with_batch_blocks(question.blocks)
        model = await self._model(store, question.provider.info)
        return Turn(
            builder=builder.for_agent(caller.agent_id)
            .for_sender(caller.channel, caller.sender_id)
            .with_session(caller.session_id)
            .with_needs(needs_of(question.text, builder.recipe.recall_gate))
            .with_summarizer(self._summarizer(question) if made else nobody),
            provider=question.provider,
            provider_reason=self._reason(question.provider),
            routing=self.routing,
            model=model,
            tools=tools.led_by(question.tools) if question.tools else tools,
            rules=self.rules,
            limits=self.limits,
            caller=caller,
            turns=store.turns if store is not None and question.session else None,
            steps=question.steps,
            logged=question.logged,
            inbox_id=question.inbox_id,
            steering=question.steering,
            origin=question.origin,
        )

    def _summarizer(self, question: Question) -> Summarizer:
        return summarizer(question.provider, model=self.builder.recipe.history.summarization_model)

    def _own(self, store: Kept) -> Sequence[Tool]:
        """Weft's own tools, made once for each recipe."""
        recipe = self.builder.recipe
        if recipe.name not in self.made:
            self.made[recipe.name] = self.own_tools(store, recipe)
        return self.made[recipe.name]

    async def _store(self, question: Question, *, made: bool) -> Kept | None:
        """The store: made for a session, read by a question if the recipe wants its memory."""
        if question.session and made:
            return await self.store.get()
        reads = question.session or self.builder.recipe.ask == "layers"
        return await self.store.find() if reads else None

    async def _session(self, store: Kept, question: Question, *, made: bool) -> str:
        """The id of an open session: that one, or the one the recipe's rule leads to; none for a question.

        The id of somebody else's session is a name like any other: it leads to one of the caller's own.
        """
        if not question.session or question.is_opened:
            return question.session or ""
        caller, rule, name = question.caller, self.builder.recipe.session, question.session
        found, bound = await store.sessions.find_either(name, caller.channel, caller.sender_id, rule=rule)
        if found is not None and _may_enter(found, caller, rule):
            if rule.goes_on(found, datetime.now(UTC)):
                return found.id
            name = found.conversation
            bound = await store.sessions.find_open(caller.channel, name, caller.sender_id, rule=rule)
        if bound is not None and rule.goes_on(bound, datetime.now(UTC)):
            return bound.id  # only who makes a session waits for the disk
        if not made:
            return ""
        new = await store.sessions.find_or_create(
            caller.channel, name, caller.sender_id, agent_id=caller.agent_id, rule=rule
        )
        return new.id

    async def _model(self, store: Kept | None, info: ModelInfo) -> ModelInfo:
        """A model, with what was learned of its tokens."""
        if info.id not in self.ratios and store is not None:
            self.ratios[info.id] = await store.turns.ratio(info.id) or info.tokens_ratio
        return replace(info, tokens_ratio=self.ratios.get(info.id, info.tokens_ratio))

    def _reason(self, provider: Provider) -> str:
        return self.choice.why if provider is self.provider else "it was asked for in the conversation"


def _may_enter(session: Session, caller: Caller, rule: SessionRule) -> bool:
    """Whether a session is the caller's own; the owner of the assistant may enter every one."""
    whose = rule.key(session.channel, session.conversation, session.sender)
    return caller.sender_id == OWNER.sender_id or whose == rule.key(
        caller.channel, session.conversation, caller.sender_id
    )
