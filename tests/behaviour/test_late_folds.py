"""Summaries that come while the next answer is given: they are told and made once, and nothing is missed."""

import asyncio
import random
from collections.abc import AsyncGenerator
from itertools import pairwise
from typing import Any

import weft
from epoch_chaos import Gated, is_fold, receipt_of, small, whole_text
from weft.gateway.folds import FOLDING
from weft.types.reply import Event
from weft.types.session import Fold

WINDOW = 6_000


def talk(rng: random.Random, number: int, words: int) -> str:
    """Return a message of made-up words that are in no other one, so that nothing is recalled."""
    parts = "ba ke li mo nu ra se ti vo zu pla gri".split()
    return f"{number}: {' '.join(''.join(rng.choices(parts, k=7)) for _ in range(words))}"


class Late(Gated):
    """A model whose summary comes while it gives the next answer."""

    def __init__(self, **more: Any) -> None:
        super().__init__(at_folds=True, **more)

    async def stream(self, context: weft.Context) -> AsyncGenerator[Event]:
        if self.reached.is_set() and not is_fold(context):
            self.gate.set()
            await self.app.folds.settle()
            self.gate.clear()
            self.reached.clear()
        async for event in super().stream(context):
            yield event

    async def connect(self) -> weft.Assistant:
        self.app = await weft.connect(provider=self)
        return self.app

    async def finish(self, session: str) -> list[Fold]:
        """Wait for the last summary, and close. Returns the folds of a session."""
        self.gate.set()
        await self.app.folds.settle()
        folds = await (await self.app.store.get()).messages.list_folds(session)
        await self.app.close()
        return folds


async def test_a_summary_that_comes_during_the_next_answer_is_told_and_made_once() -> None:
    rng, model = random.Random(8), Late(info=small(WINDOW))
    app, notices = await model.connect(), 0
    for number in range(80):
        reply = await app.ask(talk(rng, number, 9), session="chat")
        await asyncio.sleep(0)
        notices += FOLDING in reply.folds
    folds = await model.finish(reply.session_id)

    assert len(folds) >= 3
    assert notices == len(folds) == len(model.folds)
    assert min(late.last - early.last for early, late in pairwise(folds)) >= 10


async def test_messages_that_left_the_view_are_summarized_though_their_summary_comes_late() -> None:
    rng, large = random.Random(9), Late(info=small(60_000))
    app = await large.connect()
    for number in range(60):
        reply = await app.ask(talk(rng, number, 12), session="chat")
    assert await large.finish(reply.session_id) == []
    model = Late(info=small(WINDOW, "model-b"))
    app = await model.connect()
    for number in range(60, 64):
        await app.ask(talk(rng, number, 12), session="chat")
        await asyncio.sleep(0)
    shown = receipt_of(model.requests[-1])
    folds = await model.finish(reply.session_id)

    assert len(folds) == 1
    assert "[Summary of messages" in whole_text(model.requests[-1])
    assert not [item for item in shown.dropped if item.span and not item.reason.startswith("folded")]
