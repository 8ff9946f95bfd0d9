"""Beside the conversations: tasks are told when they are due, and idle conversations are learned from."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Coroutine
from dataclasses import dataclass
from math import inf
from typing import Any

from weft.errors import ProviderError, StoreError
from weft.gateway.assistant import Assistant
from weft.turn.learn import learn_facts, summarise
from weft.types.session import Session

_log = logging.getLogger(__name__)
_LONGEST_PAUSE = 30.0
_DAY = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnSettings:
    """Whether idle conversations are learned from, after how long a silence, and how often to look."""

    enabled: bool = True
    idle_minutes: float = 30.0
    every_seconds: float = 60.0


async def tell_tasks(
    app: Assistant,
    told: Callable[[], Awaitable[None]],
    stopped: asyncio.Event,
    *,
    acting: Collection[str] = (),
) -> None:
    """Tell tasks when they are due, until `stopped`; on the channels `acting` they can also be done."""
    tasks = (await app.store.get()).tasks
    while not stopped.is_set():
        if await tasks.fire(time.time(), acting=acting):
            await told()
        following = await tasks.next_due()
        wait = _LONGEST_PAUSE if following is None else following - time.time()
        await pause(stopped, min(max(wait, 0.1), _LONGEST_PAUSE))


async def tidy_up(app: Assistant, stopped: asyncio.Event) -> None:
    """Forget once a day what only says that something came or went long ago, until `stopped`."""
    while not stopped.is_set():
        await (await app.store.get()).mailbox.tidy(time.time())
        await pause(stopped, _DAY)


async def learn_from_idle(app: Assistant, settings: LearnSettings, stopped: asyncio.Event) -> None:
    """Summarise conversations that are over and keep what people said about themselves, until `stopped`."""
    while settings.enabled and not stopped.is_set():
        for session in await idle_sessions(app, settings):
            if not await unless_stopped(stopped, learn_from(app, session, settings)):
                return  # it is not summarised yet, and so learned from after the next start
        await pause(stopped, settings.every_seconds)


async def idle_sessions(app: Assistant, settings: LearnSettings) -> list[Session]:
    before = time.time() - settings.idle_minutes * 60
    return list(await (await app.store.get()).sessions.unlearned(before))


async def learn_from(app: Assistant, session: Session, settings: LearnSettings | None = None) -> None:
    """Close a session, and keep its summary and its facts, each fact with the message it came from.

    One in which somebody writes again is left alone; without settings, one in which a turn runs.
    """
    store, recipe = await app.store.get(), app.builder.recipe
    before = time.time() - settings.idle_minutes * 60 if settings else inf
    if not await store.sessions.close_idle(session.id, before):
        return
    messages = await store.messages.all(session.id)
    summary = await summarise(app.provider, recipe, messages)
    await store.summaries.add(session.channel, session.sender, summary, session_id=session.id)
    try:
        learned = await learn_facts(app.provider, recipe, messages)
    except ProviderError as error:
        _log.warning("no facts were taken from a conversation: %s", error, extra={"session": session.id})
        return
    for fact in learned:
        try:
            source = (session.id, fact.message + 1)
            sender = f"{session.channel}:{session.sender}"
            await store.facts.set(sender, fact.key, fact.value, by_model=True, source=source)
        except StoreError as error:
            _log.info("a fact was not kept: %s", error, extra={"session": session.id})


async def unless_stopped(stopped: asyncio.Event, work: Coroutine[Any, Any, object]) -> bool:
    """Do the work, and break it off when `stopped`; whether it was done."""
    working, ending = asyncio.create_task(work), asyncio.create_task(stopped.wait())
    try:
        await asyncio.wait((working, ending), return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            working.result()
        return working.done()
    finally:
        working.cancel()
        ending.cancel()
        await asyncio.wait((working, ending))


async def pause(stopped: asyncio.Event, seconds: float) -> None:
    """Wait for so long, or until `stopped`."""
    try:
        async with asyncio.timeout(seconds):
            await stopped.wait()
    except TimeoutError:
        return
