"""The engine of an assistant: it turns a request into a `Turn`, over the parts that the settings chose."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from weft.errors import ConfigError, StoreError, did_you_mean
from weft.gateway.lazy_store import LazyStore
from weft.gateway.recall_gate import needs_of
from weft.gateway.transcript import COMPARED, is_same, is_same_end, match
from weft.memory.base import Store
from weft.memory.starter import create_starter_blocks
from weft.providers.base import Provider, describe
from weft.providers.choose import Choice
from weft.tools.base import Tool
from weft.tools.registry import ToolRegistry
from weft.turn.build import ContextBuilder
from weft.turn.fold import nobody, summarizer
from weft.turn.folding import Folding, is_long
from weft.turn.run import Turn, TurnSettings, prepare
from weft.types.context import Context
from weft.types.limits import ModelInfo
from weft.types.message import Message
from weft.types.person import default_person
from weft.types.receipt import Receipt
from weft.types.recipe import Recipe
from weft.types.reply import Reply
from weft.types.request import Caller, TurnRequest
from weft.types.session import IMPORTED, Session, SessionRule

NOTES = "notes"
DEFAULT_MODEL = "weft"
"""The name under which apps ask for the model of the settings, whichever that is."""

_APP_HISTORY = (
    "The app sent another history than the stored one, so this request was built anew and does not begin "
    "with the bytes of the one before."
)
_APP_STEPS = (
    "The app sent results of its own tools, so this request was built anew and does not begin with the bytes "
    "of the one before."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """Everything that answers: a model, a recipe's builder, tools and the store.

    `builtin_tools` makes Weft's own tools for a recipe, `find_provider` another model by its name, and
    `find_builder` the builder of another recipe; a program may leave the last two out.
    """

    choice: Choice
    provider: Provider
    builder: ContextBuilder
    store: LazyStore
    tools: ToolRegistry = field(default_factory=ToolRegistry)
    builtin_tools: Callable[[Store, Recipe], Sequence[Tool]] = lambda store, recipe: ()
    settings: TurnSettings = TurnSettings()
    find_provider: Callable[[str, ModelInfo], Provider] | None = None
    find_builder: Callable[[str], ContextBuilder] | None = None
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    _providers: dict[str, Provider] = field(default_factory=dict)
    _ratios: dict[tuple[str, str], dict[str, float]] = field(default_factory=dict)
    _windows: dict[str, int] = field(default_factory=dict)
    _builtin: dict[str, Sequence[Tool]] = field(default_factory=dict)
    _known_agents: set[str] = field(default_factory=set)

    @property
    def models(self) -> tuple[str, ...]:
        """Names of the models that apps may ask for."""
        return tuple(dict.fromkeys((DEFAULT_MODEL, self.provider.info.id or DEFAULT_MODEL)))

    async def turn(self, request: TurnRequest, provider: Provider | None = None) -> Turn:
        """Prepare the turn of a request whose caller has its session.

        Raises:
            ConfigError: there is no such recipe or model.
        """
        if request.one_off:
            caller = replace(request.caller, session_id="")
            turn = await self.turn(replace(request, one_off=False, session="", caller=caller), provider)
            return replace(turn, request=request, turns=(await self.store.get()).turns)
        store = await self._store(request, create=True)
        await self._create_blocks(request, store)
        turn = self._plain_turn(request, store, provider or self._provider_for(request))
        turn = replace(turn, model=await self._model(store, turn.provider, turn.builder.recipe.tokens))
        if request.history is None or store is None or not request.session:
            return turn
        log = await store.messages.newest(request.caller.session_id, COMPARED)
        if not request.steps and await _is_stored(store, request, log):
            # What the app sends is what is stored: the stored history goes on in its epoch.
            return replace(turn, builder=turn.builder.with_messages(store.messages))
        if turn.builder.recipe.stability == "epoch":
            turn = replace(turn, notes=(_APP_STEPS if request.steps else _APP_HISTORY,))
        exchange = (Message(role="user", content=request.text), *request.steps)
        known = match(log, request.history, exchange)
        new = request.steps[max(known.count - 1, 0) :]
        logged = 1 + len(known.steps) if known.count else 0
        return replace(turn, request=replace(request, steps=(*known.steps, *new)), logged=logged)

    async def preview(self, request: TurnRequest, provider: Provider | None = None) -> Context:
        """Build what the model would see. No model is asked, and no session is created.

        Raises:
            ConfigError: there is no such recipe or model.
        """
        request = replace(request, caller=await self.identify(request.caller))
        store = await self._store(request, create=False)
        session = await self.find_session(store, request) if store is not None else None
        caller = replace(request.caller, session_id=session.id if session else "")
        request = replace(request, caller=caller)
        turn = self._plain_turn(request, store, provider or self._provider_for(request))
        model = await self._model(store, turn.provider, turn.builder.recipe.tokens)
        return await prepare(replace(turn, model=model, builder=turn.builder.with_summarizer(nobody)))

    async def identify(self, caller: Caller) -> Caller:
        """Return a caller with the person behind them, and with that person's memory."""
        try:
            store = await self.store.find()
        except StoreError:
            store = None  # a turn that needs the store fails with the reason; one that does not goes on
        sender = caller.sender
        return caller.known_as(default_person(sender) if store is None else await store.people.find(sender))

    async def find_session(self, store: Store, request: TurnRequest) -> Session | None:
        """Find the open session of a request: by its id, or by the name of the conversation.

        The id of somebody else's session is a name like any other: it leads to a session of the caller's own.
        """
        if not request.session:
            return None
        caller, rule, now = request.caller, self.builder.recipe.session, datetime.now(UTC)
        place = (request.session, caller.channel, caller.sender_id)
        by_id, by_name = await store.sessions.find_either(*place, rule=rule)
        if by_id is not None and _may_enter(by_id, caller, rule):
            if rule.goes_on(by_id, now):
                return by_id
            # It was closed or idle: whatever follows on it is in its conversation.
            place = (caller.channel, by_id.conversation, caller.sender_id)
            by_name = await store.sessions.find_open(*place, rule=rule)
        return by_name if by_name is not None and rule.goes_on(by_name, now) else None

    async def open_session(self, request: TurnRequest) -> Session:
        """Return the open session of a request; create one if there is none."""
        store, caller, rule = await self.store.get(), request.caller, self.builder.recipe.session
        session = await self.find_session(store, request)
        if session is not None:
            return session  # only a new session waits for the disk
        closed = await store.sessions.find(request.session)
        is_own = closed is not None and _may_enter(closed, caller, rule)
        name = closed.conversation if closed is not None and is_own else request.session
        return await store.sessions.find_or_create(
            caller.channel, name, caller.sender_id, agent_id=caller.agent_id, rule=rule
        )

    def has_memory_tools(self, request: TurnRequest) -> bool:
        return "memory" in self.builder_named(request.recipe).recipe.tools.builtin

    def shows_instructions(self, recipe: str) -> bool:
        """Return whether a recipe shows the standing instructions of the person."""
        return self.builder_named(recipe).recipe.layer("standing") is not None

    async def remember(self, caller: Caller, text: str) -> str:
        """Add a line to the caller's notes, for a model that cannot do it. Returns a few words about it.

        The author is the person who asked for it, since the model had no part in it.
        """
        store = await self.store.get()
        await create_starter_blocks(store.memory, caller.agent_id)
        memory = store.memory.by(caller.person, "asked to remember")
        if await memory.get_block(caller.agent_id, NOTES) is None:
            await memory.create_block(caller.agent_id, NOTES, pinned=True)
        await memory.append_to_block(caller.agent_id, NOTES, text, own_line=True)
        return f"remembered in {NOTES}: {text}"

    def learn_ratio(self, receipt: Receipt) -> None:
        """Remember how many tokens of a model ours are in a script, as its provider reported."""
        if receipt.ratio is not None and receipt.script:
            self._ratios.setdefault((receipt.model, receipt.counter), {})[receipt.script] = receipt.ratio

    def provider_named(self, name: str, current: ModelInfo) -> Provider:
        """Return another model: `PROVIDER`, `PROVIDER:MODEL`, or a model of the current provider.

        Raises:
            ConfigError: there is none of that name.
        """
        if self.find_provider is None:
            raise ConfigError("This assistant was given its model by a program: it cannot be changed here.")
        key = f"{current.provider} {name}"  # the same name is another model at another provider
        if key not in self._providers:
            self._providers[key] = self.find_provider(name, current)
        return self._providers[key]

    def folding(self, turn: Turn, reply: Reply, receipt: Receipt, store: Store) -> Folding:
        """Return what it takes to fold the session of a turn that was answered."""
        return Folding(
            session_id=turn.request.caller.session_id,
            builder=turn.builder.with_model_info(turn.model or turn.provider.info),
            provider=turn.provider,
            store=store,
            receipt=receipt,
            clock=self.clock,
            is_long=is_long(receipt, reply.text, turn.builder.history_rule),
        )

    async def close(self) -> None:
        """Close models, tool servers and the store. What fails to close does not keep the others."""
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self.store.close)
            stack.push_async_callback(self.tools.close)
            for provider in (*self._providers.values(), self.provider):
                stack.push_async_callback(provider.close)

    def _plain_turn(self, request: TurnRequest, store: Store | None, provider: Provider) -> Turn:
        """Put a turn together: memory where there is some, a place in the log with a session."""
        caller, builder, tools = request.caller, self.builder_named(request.recipe), self.tools
        if store is not None:
            builder = builder.with_store(store).with_activity(store.activity)
            if request.session:
                own = self._builtin_for(store, builder.recipe)
                tools = tools.joined(tool for tool in own if caller.is_owner or not tool.owner_only)
        if request.history is not None:
            builder = builder.with_messages(request.history)
        if request.instructions:
            builder = builder.with_base_instructions(request.instructions)
        if request.blocks:
            builder = builder.with_batch_blocks(request.blocks)
        summarize = summarizer(provider, model=builder.history_rule.summarization_model)
        return Turn(
            request=request,
            builder=builder.for_agent(caller.agent_id)
            .for_sender(caller.channel, caller.sender_id)
            .with_session(caller.session_id)
            .with_needs(needs_of(request.text, builder.recipe.recall_gate))
            .with_summarizer(summarize),
            provider=provider,
            provider_reason=self._reason(provider),
            tools=tools.led_by(request.tools) if request.tools else tools,
            settings=self.settings,
            turns=store.turns if store is not None and request.session else None,
        )

    def builder_named(self, recipe: str) -> ContextBuilder:
        """Return the builder of a recipe; without a name, that of the settings.

        Raises:
            ConfigError: there is no such recipe.
        """
        own = self.builder.recipe.name
        if recipe in ("", own):
            return self.builder
        if self.find_builder is None:
            raise ConfigError(f"This assistant has the recipe {own!r} and no other: leave it out.")
        return self.find_builder(recipe)

    def _provider_for(self, request: TurnRequest) -> Provider:
        if request.model and request.model not in self.models:
            known = did_you_mean(request.model, self.models)
            raise ConfigError(f"There is no model {request.model!r} here: {known}")
        return self.provider

    def _builtin_for(self, store: Store, recipe: Recipe) -> Sequence[Tool]:
        if recipe.name not in self._builtin:
            self._builtin[recipe.name] = self.builtin_tools(store, recipe)
        return self._builtin[recipe.name]

    async def _create_blocks(self, request: TurnRequest, store: Store | None) -> None:
        """Give a person their first blocks, where the recipe has tools to write them."""
        agent_id = request.caller.agent_id
        if store is None or not request.session or agent_id in self._known_agents:
            return
        if self.has_memory_tools(request):
            await create_starter_blocks(store.memory, agent_id)
            self._known_agents.add(agent_id)

    async def _store(self, request: TurnRequest, *, create: bool) -> Store | None:
        """Return the store: created for a session, only read where the recipe wants its memory."""
        if request.session and create:
            return await self.store.get()
        reads = request.session or self.builder_named(request.recipe).recipe.ask == "layers"
        return await self.store.find() if reads else None

    async def _model(self, store: Store | None, provider: Provider, counter: str) -> ModelInfo:
        """Return a model with what its server and the settings say, and what was learned of its tokens."""
        info = await self._described(store, provider)
        key = (info.id, counter)
        if key not in self._ratios and store is not None:
            self._ratios[key] = dict(await store.turns.find_ratios(*key))
        priced = info.with_cache_prices(self.settings.cache_prices)
        return priced.with_learned(self._ratios.get(key, {}))

    async def _described(self, store: Store | None, provider: Provider) -> ModelInfo:
        """Return a model with its window. What a server says about it is stored, and asked for only once."""

        async def find_window(model: str) -> int | None:
            key = f"{provider.info.provider}:{model}"
            if key not in self._windows and store is not None:
                self._windows[key] = await store.turns.find_window(key) or 0
            return self._windows.get(key)

        info = await describe(provider, find_window)
        await self.save_window(info)
        return info

    async def save_window(self, info: ModelInfo) -> None:
        """Store the window that a server named, or corrected when it refused a request, if that is news."""
        key = f"{info.provider}:{info.id}"
        is_news = key in self._windows and not info.is_assumed and self._windows[key] != info.max_tokens
        if is_news and info.max_tokens and (store := await self.store.find()) is not None:
            self._windows[key] = info.max_tokens
            with suppress(StoreError):  # a store that can only be read
                await store.turns.save_window(key, info.max_tokens)

    def _reason(self, provider: Provider) -> str:
        return self.choice.why if provider is self.provider else "it was asked for in the conversation"


async def _is_stored(store: Store, request: TurnRequest, newest: Sequence[Message]) -> bool:
    """Return whether an app sends the stored history. A long log is read whole if its end is equal."""
    history = request.history or ()
    if len(newest) < COMPARED:
        return is_same(newest, history)
    if not is_same_end(newest, history):
        return False
    return is_same(await store.messages.all(request.caller.session_id), history)


def _may_enter(session: Session, caller: Caller, rule: SessionRule) -> bool:
    """Return whether a session is the caller's own. The owner of the assistant may enter every one.

    A file chose the id of an imported session, so only a person who names it at the terminal enters that.
    """
    if session.channel == IMPORTED and caller.channel != "terminal":
        return False
    key = rule.key(session.channel, session.conversation, session.sender)
    return caller.is_owner or key == rule.key(caller.channel, session.conversation, caller.sender_id)
