"""The one desk: every message from every channel becomes a `TurnRequest` and is handled here.

Authorize, sanitize, command or turn, in the lane of its conversation. Channels only translate to and from it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Iterable, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial

from weft.errors import Unauthorized
from weft.gateway.commands import is_command, run_command
from weft.gateway.conversation import Conversation
from weft.gateway.engine import Engine
from weft.gateway.folds import Folds
from weft.gateway.indexing import Indexing
from weft.gateway.lanes import Lane, Lanes
from weft.gateway.lazy_store import LazyStore
from weft.gateway.remember import explicit_memory
from weft.gateway.sanitize import sanitize
from weft.gateway.settings import GatewaySettings
from weft.gateway.standing import HeardInstructions
from weft.offload import SMALL, offloaded
from weft.providers.base import Provider, collected
from weft.turn.journal import settle_interrupted
from weft.turn.run import run_turn
from weft.types.context import Context
from weft.types.message import Message
from weft.types.reply import Done, Event, Reply, TextDelta
from weft.types.request import OWNER, Address, AskConsent, Caller, TurnRequest
from weft.types.session import IMPORTED, OpenTurn, Session

_IMPORTED = "imported conversation"
_MAX_CHOSEN = 1000
"""Conversations whose chosen model and recipe are remembered while the program runs."""


class Assistant:
    """An assistant as an object. What is said in a session is remembered in the store of the settings.

    `allowed` lists, for each channel that strangers can write to, who may; paired people may too. Other
    channels authenticate people themselves. `ask_owner` puts a question to the owner, where they can be
    reached: a server with channels sets it.
    """

    def __init__(self, engine: Engine, settings: GatewaySettings | None = None) -> None:
        self.engine, self.lanes = engine, Lanes(settings or GatewaySettings())
        self.folds, self.indexing = Folds(engine), Indexing(engine.store)
        self.allowed: dict[str, Collection[str]] = {}
        self.ask_owner: AskConsent | None = None
        self._chosen: dict[Address, tuple[Provider, str]] = {}

    @property
    def store(self) -> LazyStore:
        return self.engine.store

    async def handle(
        self, request: TurnRequest, *, provider: Provider | None = None
    ) -> AsyncGenerator[Event]:
        """Handle one message. The events hold all of the reply's text; the last one is `Done`.

        Raises:
            Unauthorized: the caller may not write to this assistant.
            EmptyMessage: there is nothing to answer.
            ChannelError: too many messages wait already.
            WeftError: the command or the turn failed.
        """
        async with self.lanes.admit(request) as admission:
            if admission.reply is not None:
                for event in _complete(admission.reply):
                    yield event
                return
            if not await self.is_allowed(request.caller):
                raise Unauthorized
            safe = await offloaded(len(request.text), sanitize, request.text)
            request = replace(request, text=safe.text, caller=await self.engine.identify(request.caller))
            session = await self.engine.open_session(request) if request.session else None
            if session is not None:
                request = _in_session(request, session)
                if request.commands and is_command(safe.text):
                    for event in _complete(await self._command(request, session)):
                        yield event
                    return
            async with self.lanes.turn(request.caller.session_id):
                chosen, recipe = self._chosen.get(request.caller.address, (None, ""))
                provider, request = provider or chosen, replace(request, recipe=request.recipe or recipe)
                turn = self._turn(request, provider, admission.lane, safe.notes)
                async with aclosing(turn) as events:
                    async for event in events:
                        yield event

    async def ask(self, text: str, session: str | None = None, *, caller: Caller = OWNER) -> Reply:
        """Return the reply to a message. With a session the model sees the history of that session."""
        return await collected(self.stream(text, session, caller=caller))

    async def stream(
        self,
        text: str,
        session: str | None = None,
        *,
        history: Iterable[Message] | None = None,
        caller: Caller = OWNER,
        provider: Provider | None = None,
    ) -> AsyncGenerator[Event]:
        """Yield the reply as it comes; the last event is `Done`.

        A session is named by its id or by any name; it is created if there is none. A given history is shown
        to the model but not stored.
        """
        request = _request(text, session, history, caller)
        async with aclosing(self.handle(request, provider=provider)) as events:
            async for event in events:
                yield event

    async def context(
        self,
        text: str,
        session: str | None = None,
        *,
        history: Iterable[Message] | None = None,
        caller: Caller = OWNER,
        provider: Provider | None = None,
    ) -> Context:
        """Build what the model would see. No model is asked."""
        return await self.preview(_request(text, session, history, caller), provider=provider)

    async def preview(self, request: TurnRequest, *, provider: Provider | None = None) -> Context:
        """Build what the model would see with a request of this caller."""
        safe = await offloaded(len(request.text), sanitize, request.text)
        caller = await self.engine.identify(request.caller)
        request = replace(request, text=safe.text, caller=caller)
        return await self.engine.preview(request, provider)

    async def interrupted(self, session_id: str | None = None) -> Sequence[OpenTurn]:
        """Settle turns whose process died, and return them: they are in the log now, with a note."""
        store = await self.store.find()
        return () if store is None else await settle_interrupted(store.turns, session_id)

    async def is_allowed(self, caller: Caller) -> bool:
        """Return whether a caller may write: they are on the channel's allowlist, or paired."""
        allowed = self.allowed.get(caller.channel)
        if allowed is None or caller.sender_id in allowed:
            return True
        return await (await self.store.get()).auth.is_paired(caller.channel, caller.sender_id)

    async def close(self) -> None:
        """Close models, tool servers and the store. Folds that run have a while to end."""
        await self.indexing.close()
        await self.folds.settle()
        await self.engine.close()

    async def _command(self, request: TurnRequest, session: Session) -> Reply:
        """Run a command. The model and the recipe that one chooses are used here from now on."""
        address = request.caller.address
        provider, recipe = self._chosen.get(address, (self.engine.provider, request.recipe))
        conversation = Conversation(
            engine=self.engine, caller=request.caller, session=session, provider=provider, recipe=recipe
        )
        text = await run_command(conversation, request.text)
        if (conversation.provider, conversation.recipe) != (provider, recipe):
            self._chosen.pop(address, None)
            self._chosen[address] = conversation.provider, conversation.recipe
            if len(self._chosen) > _MAX_CHOSEN:
                del self._chosen[next(iter(self._chosen))]
        return Reply(text=text, session_id=conversation.session.id)

    async def _turn(
        self, request: TurnRequest, provider: Provider | None, lane: Lane, notes: tuple[str, ...]
    ) -> AsyncGenerator[Event]:
        """Run the turn of a request, and give its reply to the requests that steered it."""
        request = replace(request, caller=self._with_asking(request.caller))
        change = await self._remember_by_rule(request, provider or self.engine.provider)
        heard = HeardInstructions(self.engine)
        is_steered = self.lanes.settings.while_running == "steer" and request.origin == "user"
        await heard.hear(request, is_steered=is_steered)
        turn = await self.engine.turn(request, provider)
        turn = replace(turn, notes=(*notes, *turn.notes), changes=heard.changes)
        if is_steered:
            turn = replace(turn, steering=heard.listening(request, partial(_steering, lane)))
        reply: Reply | None = None
        try:
            async with aclosing(run_turn(turn)) as events:
                async for event in events:
                    if isinstance(event, Done):
                        await heard.save()
                        reply = replace(event.reply, changes=(*change, *event.reply.changes))
                        self._learn_ratio(reply)
                        if sentence := await self.folds.begin(turn, reply):
                            reply = replace(reply, folds=(*reply.folds, sentence))
                        event = Done(reply)  # noqa: PLW2901
                    yield event
        finally:
            lane.settle(reply)
            if reply is not None and turn.turns is not None and not request.one_off:
                self.indexing.begin()
        await self.engine.save_window(turn.provider.info)

    def _with_asking(self, caller: Caller) -> Caller:
        """Return a caller whose questions do not hold up other turns while a person thinks."""
        ask = self.lanes.without_slot(caller.ask) if caller.ask is not None else None
        owner = ask if caller.is_owner else self.ask_owner
        if owner is not None and owner is not ask:
            owner = self.lanes.without_slot(owner)
        return replace(caller, ask=ask, ask_owner=owner)

    async def _remember_by_rule(self, request: TurnRequest, provider: Provider) -> tuple[str, ...]:
        """Store what the person asks to remember if the model has no tool to do it."""
        if provider.info.calls_tools or not request.session or request.origin != "user":
            return ()
        what = explicit_memory(request.own_words) if self.engine.has_memory_tools(request) else None
        return (await self.engine.remember(request.caller, what),) if what else ()

    def _learn_ratio(self, reply: Reply) -> None:
        if reply.receipt is not None:
            self.engine.learn_ratio(reply.receipt)


def _request(
    text: str, session: str | None, history: Iterable[Message] | None, caller: Caller
) -> TurnRequest:
    messages = None if history is None else tuple(history)
    return TurnRequest(text=text, session=session or "", history=messages, caller=caller)


def _in_session(request: TurnRequest, session: Session) -> TurnRequest:
    conversation = request.caller.conversation or session.conversation
    caller = replace(request.caller, session_id=session.id, conversation=conversation)
    outside = (_IMPORTED,) if session.channel == IMPORTED else ()
    return replace(request, caller=caller, outside=(*request.outside, *outside))


def _complete(reply: Reply) -> tuple[Event, ...]:
    """Return the events of a reply that no model streamed."""
    return (TextDelta(reply.text), Done(reply)) if reply.text else (Done(reply),)


def _steering(lane: Lane) -> list[TurnRequest]:
    """Take the messages that came since the turn of a lane began, up to one that is not plain text."""

    def is_text(request: TurnRequest) -> bool:
        is_command_here = request.commands and is_command(request.text)
        if len(request.text) > SMALL:
            return False  # it is sanitized in a thread, in a turn of its own
        return request.is_plain and bool(request.text.strip()) and not is_command_here

    return [replace(each, text=sanitize(each.text).text) for each in lane.absorb(is_text)]
