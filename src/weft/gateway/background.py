"""Work beside the conversations: firing tasks, learning from idle sessions, deleting old rows."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, replace
from math import inf

from weft.errors import ProviderError, StoreError
from weft.gateway.engine import Engine
from weft.gateway.lazy_store import LazyStore
from weft.gateway.waiting import pause, unless
from weft.memory.base import Store
from weft.store.rules import MIN_REPEAT_SECONDS
from weft.turn.learn import learn_facts, no_summary, summarize, summary_origin
from weft.types.message import Message
from weft.types.plural import counted
from weft.types.session import Session, SideCall

_log = logging.getLogger(__name__)
_LONGEST_PAUSE = 30.0
_DAY = 86_400.0
_PAUSES = (60, 300, 900, 3_600, 3 * 3_600, 6 * 3_600, *(86_400,) * 6)
"""Seconds until a session is learned from again after a failure; about a week in all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnSettings:
    """Whether idle sessions are learned from, after how long a silence, and how often to look.

    The embedded model is too small to be trusted with summaries and facts: it learns only if that is set.
    """

    enabled: bool = True
    with_embedded_model: bool = False
    idle_minutes: float = 30.0
    every_seconds: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnStoreSettings:
    """For how many days the requests of turns are stored; 0 for ever. Messages and receipts always stay."""

    keep_days: float = 0.0


async def fire_tasks(
    store: LazyStore,
    fired: Callable[[], Awaitable[None]],
    stopped: asyncio.Event,
    *,
    acting: Collection[str] = (),
    min_repeat_seconds: float = MIN_REPEAT_SECONDS,
) -> None:
    """Fire tasks when they are due, until `stopped`. On the channels `acting` it also does them."""
    tasks = (await store.get()).tasks
    while not stopped.is_set():
        if await tasks.fire(time.time(), acting=acting, min_repeat_seconds=min_repeat_seconds):
            await fired()
        next_due = await tasks.next_due()
        wait = _LONGEST_PAUSE if next_due is None else next_due - time.time()
        await pause(stopped, min(max(wait, 0.1), _LONGEST_PAUSE))


async def take_reminders(store: Store, channel: str) -> list[str]:
    """Return the reminders that are due on a channel and mark them as delivered.

    A reminder that another process was showing when it ended is returned again: nobody may have read it.
    """
    await store.tasks.fire(time.time(), channels=(channel,))
    texts = [delivery.message.text for delivery in await store.mailbox.fail_interrupted((channel,))]
    while due := await store.mailbox.claim_due(time.time(), (channel,)):
        for delivery in due:
            await store.mailbox.mark_sent(delivery.id)
            texts.append(delivery.message.text)
    return texts


async def delete_old(store: LazyStore, settings: TurnStoreSettings, stopped: asyncio.Event) -> None:
    """Delete old inbox and outbox rows, and requests that are old enough, once a day until `stopped`."""
    while not stopped.is_set():
        now, opened = time.time(), await store.get()
        await opened.mailbox.delete_old(now)
        if settings.keep_days > 0:
            await opened.turns.delete_requests(now - settings.keep_days * _DAY)
        await pause(stopped, _DAY)


async def learn_from_idle(engine: Engine, settings: LearnSettings, stopped: asyncio.Event) -> None:
    """Summarize sessions that are over and store facts about their people, until `stopped`."""
    while may_learn(engine, settings) and not stopped.is_set():
        learning = await unless(stopped.wait(), learn_once(engine, settings))
        if learning is None:
            return  # what has no summary yet is learned from at the next start
        learning.result()
        await pause(stopped, settings.every_seconds)


async def learn_once(engine: Engine, settings: LearnSettings) -> None:
    """Learn from all sessions that are over."""
    for session in await idle_sessions(engine, settings):
        await learn_from(engine, session, settings)


def may_learn(engine: Engine, settings: LearnSettings) -> bool:
    """Return whether the model that answers may be asked for summaries and facts."""
    return settings.enabled and (settings.with_embedded_model or engine.provider.info.provider != "local")


async def idle_sessions(engine: Engine, settings: LearnSettings) -> Sequence[Session]:
    before = time.time() - settings.idle_minutes * 60
    return await (await engine.store.get()).sessions.list_unlearned(before)


async def learn_from(engine: Engine, session: Session, settings: LearnSettings | None = None) -> None:
    """Close a session and store its summary and its facts, each fact with the message it came from.

    A session in which somebody writes again is left alone; without settings, one in which a turn runs. If the
    model fails, the session is learned from later, after pauses that grow up to a day, for a week.
    """
    store, recipe = await engine.store.get(), engine.builder.recipe
    before = time.time() - settings.idle_minutes * 60 if settings else inf
    if not await store.sessions.close_idle(session.id, before):
        return
    messages = await store.messages.all(session.id)
    try:
        calls: list[SideCall] = []
        summary = await summarize(engine.provider, recipe, messages, calls)
        await _record(store, session, calls)
        await learn_facts_from(engine, session, messages)
    except ProviderError as error:
        if session.learn_tries < len(_PAUSES):
            pause_seconds = _PAUSES[session.learn_tries]
            await store.sessions.postpone_learning(session.id, time.time() + pause_seconds)
            _log.warning(
                "a conversation is learned from later, in %s: %s",
                _length(pause_seconds),
                error,
                extra={"session": session.id},
            )
            return
        _log.warning("a conversation was not summarized for a week: %s", error, extra={"session": session.id})
        summary = no_summary(messages)
    origin = summary_origin(messages, recipe)
    await store.summaries.add(session.channel, session.sender, summary, session_id=session.id, origin=origin)


async def learn_facts_from(engine: Engine, session: Session, messages: Sequence[Message]) -> None:
    """Store the facts in the messages since the last time. The session may go on.

    Raises:
        ProviderError: the model could not be asked; nothing was stored.
    """
    store, new = await engine.store.get(), messages[session.learned_to :]
    calls: list[SideCall] = []
    facts = await learn_facts(engine.provider, engine.builder.recipe, new, calls)
    await _record(store, session, calls)
    for fact in facts:
        try:
            source = (session.id, session.learned_to + fact.message + 1)
            sender = f"{session.channel}:{session.sender}"
            await store.facts.set(sender, fact.key, fact.value, by_model=True, source=source)
        except StoreError as error:
            _log.info("a fact was not stored: %s", error, extra={"session": session.id})
    await store.sessions.set_learned(session.id, len(messages))


async def _record(store: Store, session: Session, calls: Sequence[SideCall]) -> None:
    """Store what was asked to learn from a session, with its cost."""
    for call in calls:
        await store.turns.add_call(replace(call, kind="learn", session_id=session.id))


def _length(seconds: int) -> str:
    return counted(seconds // 3_600, "hour") if seconds >= 3_600 else counted(seconds // 60, "minute")
