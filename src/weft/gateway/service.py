"""The assistant for programs that talk over HTTP, and what of their conversations is new."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from uuid import uuid4
from weakref import WeakValueDictionary

from weft.errors import ConfigError, StoreError, did_you_mean
from weft.gateway.assistant import Assistant, Question
from weft.gateway.clean import clean
from weft.providers.base import Provider
from weft.tools.base import Caller
from weft.turn.build import ContextBuilder
from weft.types.ask import Ask
from weft.types.context import Context
from weft.types.memory import RenderedBlock
from weft.types.message import Message
from weft.types.receipt import Receipt
from weft.types.reply import Event
from weft.types.search import MemorySearchResult, SearchOptions
from weft.types.session import Session

_log = logging.getLogger(__name__)

ANY = "weft"
"""The name of the model that the settings chose, whichever that is."""
_AGENT = "weft"
_LOOKED_AT = 500
"""So many of the newest messages of a log are compared with what a program says was said."""


class AssistantService:
    """Answers programs. Who asks is `http:SENDER`, and never sees what is another sender's.

    A program that holds its history itself has a session for each conversation, known by its sender, its
    instructions and how it began; only what is new of it goes into the log. `models` are further models that
    may be asked for, and `builder_for` makes the builder of another recipe.
    """

    def __init__(
        self,
        app: Assistant,
        *,
        models: Sequence[str] = (),
        builder_for: Callable[[str], ContextBuilder] | None = None,
    ) -> None:
        self._app, self._builder_for = app, builder_for
        self._models = tuple(dict.fromkeys((ANY, app.provider.info.id or ANY, *models)))
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def models(self) -> Sequence[str]:
        return self._models

    async def opened(self, ask: Ask) -> Ask:
        app = self._checked(ask)
        if ask.is_opened:
            return ask
        name = ask.session or (uuid4().hex if ask.history is None else conversation_name(ask))
        return replace(ask, session=await app.session_id(name, caller=_caller(ask)), is_opened=True)

    async def stream(self, ask: Ask) -> AsyncGenerator[Event]:
        ask = await self.opened(ask)  # whoever names a session of somebody else gets one of their own
        app = self._checked(ask)
        # Two turns at once in one session would not know what the other is about to store.
        async with self._turns.setdefault(ask.session, asyncio.Lock()):
            question = await self._with_steps(ask, self._question(ask))
            async with aclosing(app.answer(question)) as events:
                async for event in events:
                    yield event

    async def context(self, ask: Ask) -> Context:
        return await self._checked(ask).look(self._question(ask))

    async def receipt(self, turn_id: str) -> Receipt | None:
        store = await self._app.store.find()
        return None if store is None else await store.turns.find(turn_id)

    async def sessions(self, limit: int) -> Sequence[Session]:
        store = await self._app.store.find()
        return () if store is None else await store.sessions.list(limit=limit)

    async def blocks(self) -> Sequence[RenderedBlock]:
        store = await self._app.store.find()
        return () if store is None else await store.memory.rendered_blocks(_AGENT)

    async def search(self, query: str, limit: int) -> Sequence[MemorySearchResult]:
        store = await self._app.store.find()
        return () if store is None else await store.memory.search(_AGENT, query, SearchOptions(limit=limit))

    async def healthy(self) -> bool:
        try:
            store = await self._app.store.find()
            if store is not None:
                await store.sessions.list(limit=1)
        except StoreError:
            _log.exception("the store cannot be read")
            return False
        return True

    def _provider(self, model: str) -> Provider:
        own = self._app.provider
        return own if model in ("", ANY, own.info.id) else self._app.provider_named(model, own.info)

    def _checked(self, ask: Ask) -> Assistant:
        """The app that answers this.

        Raises:
            ConfigError: there is no such model or recipe.
        """
        if ask.model and ask.model not in self._models:
            known = did_you_mean(ask.model, self._models)
            raise ConfigError(f"There is no model {ask.model!r} here: {known}")
        if ask.recipe in ("", self._app.builder.recipe.name):
            return self._app
        if self._builder_for is None:
            own = self._app.builder.recipe.name
            raise ConfigError(f"This assistant has the recipe {own!r} and no other: leave it out.")
        return replace(self._app, builder=self._builder_for(ask.recipe))

    def _question(self, ask: Ask) -> Question:
        return Question(
            text=ask.text,
            session=ask.session or None,
            is_opened=ask.is_opened,
            history=ask.history,
            caller=_caller(ask),
            provider=self._provider(ask.model),
            instructions=ask.instructions,
            tools=ask.tools,
        )

    async def _with_steps(self, ask: Ask, question: Question) -> Question:
        """The question with what was done for it, and how much of that the log has already."""
        if ask.history is None:
            return question
        store = await self._app.store.get()
        log = await store.messages.newest(ask.session, _LOOKED_AT)
        asked = Message(role="user", content=clean(ask.text).text)
        known = compare(log, ask.history, (asked, *ask.steps))
        new = ask.steps[max(known.count - 1, 0) :]
        logged = 1 + len(known.steps) if known.count else 0
        return replace(question, steps=(*known.steps, *new), logged=logged)


@dataclass(frozen=True, slots=True)
class Known:
    """How many messages of an exchange are in the log, and what the log has behind the first of them.

    That can be more than the program tells: calls of our own tools, and what only a provider reads.
    """

    count: int = 0
    steps: tuple[Message, ...] = ()


def compare(log: Sequence[Message], history: Sequence[Message], exchange: Sequence[Message]) -> Known:
    """What of an exchange is the log's last one.

    A program may leave out the oldest messages, or show others than were stored: what of its history is not
    in the log is passed over. The same question asked twice in a row is two exchanges.
    """
    at = 0
    for message in history:
        at = _find(log, message, at)[1]
    asked = [n for n, message in enumerate(log) if message.role == "user" and message.origin == "user"]
    if not asked or asked[-1] < at or not _same(log[asked[-1]], exchange[0]):
        return Known()
    first = end = asked[-1] + 1
    count = 1
    for message in exchange[1:]:
        found, after = _find(log, message, end)
        if not found:
            break
        count, end = count + 1, after
    return Known(count, tuple(log[first : _with_results(log, end)]))


def _find(log: Sequence[Message], message: Message, start: int) -> tuple[bool, int]:
    """Whether a message is in the log from there on, and the place behind it, or the same place."""
    found = next((n for n in range(start, len(log)) if _same(log[n], message)), None)
    return (False, start) if found is None else (True, found + 1)


def _with_results(log: Sequence[Message], end: int) -> int:
    """The place behind the results of our own tools that were called together with the program's."""
    calls = {call.id for call in log[end - 1].tool_calls} if end else set()
    while end < len(log) and log[end].role == "tool" and log[end].tool_call_id in calls:
        end += 1
    return end


def _same(logged: Message, told: Message) -> bool:
    """Whether a program tells a message of the log: a call and its result by their ids, others by text."""
    if logged.role != told.role:
        return False
    if told.role == "tool":
        return logged.tool_call_id == told.tool_call_id
    if told.tool_calls:
        return {call.id for call in told.tool_calls} <= {call.id for call in logged.tool_calls}
    return not logged.tool_calls and logged.content.strip() == told.content.strip()


def conversation_name(ask: Ask) -> str:
    """A name that stays while a conversation grows: of who speaks, how it was set up and how it began."""
    began = next((m.content for m in ask.history or () if m.role == "user"), ask.text)
    told = hashlib.sha256()
    for part in (ask.sender, ask.instructions, began):
        told.update(len(part).to_bytes(8, "big") + part.encode("utf-8", "replace"))
    return f"v1-{told.hexdigest()[:32]}"


def _caller(ask: Ask) -> Caller:
    return Caller(agent_id=_AGENT, channel="http", sender_id=ask.sender)
