"""Learning beside conversations: it neither ends one that goes on nor keeps a server from stopping."""

import asyncio
from collections.abc import Callable
from typing import Any

import weft
from weft.gateway.background import LearnSettings, learn_from_idle
from wired import Echo, Wire, gateway, said


class SlowToLearn(Echo):
    def __init__(self) -> None:
        super().__init__()
        self.learning, self.learned, self.beside = asyncio.Event(), asyncio.Event(), 0

    async def complete(self, context: weft.Context) -> weft.Reply:
        self.beside += 1
        self.learning.set()
        await self.learned.wait()
        return weft.Reply(text="none")


TWO_HOURS_AGO = "update sessions set active_at = active_at - 7200 + 60 * (sender = '8')"
"""Nobody has written for two hours; the person 8 a minute less."""


async def test_a_conversation_that_goes_on_is_not_closed(sql: Callable[..., Any]) -> None:
    wire, model = Wire(), SlowToLearn()
    async with gateway(model, wire) as (made, app):
        await made.submit(said("one"))
        await made.submit(said("my boat is called Marlin", sender="8"))
        await wire.wait(2)
        sql(TWO_HOURS_AGO)
        stopped = asyncio.Event()
        learning = asyncio.create_task(learn_from_idle(app.engine, LearnSettings(), stopped))
        await model.learning.wait()  # 7's conversation is learned from, and 8's is the next on the list
        await made.submit(said("what is it called?", 2, sender="8"))
        await wire.wait(3)
        model.learned.set()
        while model.beside < 2:
            await (await app.store.get()).sessions.list()
        stopped.set()
        await learning
        await made.submit(said("and now?", 3, sender="8"))
        await wire.wait(4)

    assert "what is it called?" in model.requests[-1].to_prompt_string()


async def test_a_server_that_stops_learns_from_nothing_more(sql: Callable[..., Any]) -> None:
    wire, model, people = Wire(), SlowToLearn(), tuple(str(n) for n in range(5))
    async with gateway(model, wire, allowed=people) as (made, app):
        for person in people:
            await made.submit(said("hello", sender=person))
        await wire.wait(5)
        sql(TWO_HOURS_AGO)
        stopped = asyncio.Event()
        learning = asyncio.create_task(learn_from_idle(app.engine, LearnSettings(), stopped))
        await model.learning.wait()
        stopped.set()
        await asyncio.wait_for(learning, 30)

        store = await app.store.get()
        assert len(await store.sessions.list_unlearned(9e9)) == 5, "what was broken off is learned from later"
    assert model.beside == 1
