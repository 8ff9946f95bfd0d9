"""Vectors in the background: no answer waits for them, and no embedder breaks a turn."""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import weft
from embedding_server import vector_of
from weft.errors import StoreError
from weft.gateway import indexing
from weft.gateway.assistant import Assistant


class Topics:
    """An embedder that may fail, and waits until it may go on if it is told so."""

    name, dimensions = "topics", 8

    def __init__(self, error: Exception | None = None) -> None:
        self.error, self.waits = error, False
        self.began, self.go_on = asyncio.Event(), asyncio.Event()

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        if self.error is not None:
            raise self.error
        if self.waits:
            self.began.set()
            await self.go_on.wait()
        return [vector_of(text, self.dimensions) for text in texts]


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexing, "_DELAY_SECONDS", 0.0)
    monkeypatch.setattr(indexing, "_LONGEST_REST", 0.0)


@asynccontextmanager
async def talking(path: Path, embedder: Topics) -> AsyncIterator[tuple[Assistant, weft.Store]]:
    async with await weft.open(path / "weft.db", embedder=embedder) as store:
        assistant = await weft.connect(provider=weft.ScriptedProvider(["A ship."] * 9), store=store)
        try:
            yield assistant, store
        finally:
            await assistant.close()


async def missing(store: weft.Store) -> int:
    assert store.meaning is not None
    return await store.meaning.count_missing()


async def until_indexed(assistant: Assistant) -> None:
    task = assistant.indexing._task
    assert task is not None
    async with asyncio.timeout(30):
        await task


async def test_what_was_said_has_vectors_after_an_answer(tmp_path: Path) -> None:
    async with talking(tmp_path, Topics()) as (assistant, store):
        await assistant.ask("Which vessel?", "chat")
        await until_indexed(assistant)

        assert await missing(store) == 0
        await assistant.ask("And now?", "chat")
        await until_indexed(assistant)
        assert await missing(store) == 0


async def test_no_answer_waits_for_the_background(tmp_path: Path) -> None:
    embedder = Topics()
    async with talking(tmp_path, embedder) as (assistant, store):
        await assistant.ask("Hello.", "chat")
        await until_indexed(assistant)
        embedder.waits = True
        await assistant.ask("Hello.", "chat")
        async with asyncio.timeout(30):
            await embedder.began.wait()
            reply = await assistant.ask("Thanks!", "chat")

        assert reply.text == "A ship."
        assert await missing(store) > 0
        # The end of the program ends the work; the next program goes on with it.
    async with talking(tmp_path, Topics()) as (assistant, store):
        left = await missing(store)
        assistant.indexing.begin()
        await until_indexed(assistant)
        assert (left > 0, await missing(store)) == (True, 0)


@pytest.mark.parametrize("error", [StoreError("It is down."), ValueError("no model"), ConnectionError()])
async def test_a_broken_embedder_never_breaks_a_turn_and_is_reported_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    async with talking(tmp_path, Topics(error)) as (assistant, _):
        for text in ("Which ship was blue?", "Where is the tea?", "Which ship was blue?"):
            assert (await assistant.ask(text, "chat")).text == "A ship."
            await until_indexed(assistant)

    warnings = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert ["by words alone" in record.getMessage() for record in warnings] == [True]


async def test_an_assistant_that_was_closed_begins_nothing(tmp_path: Path) -> None:
    async with talking(tmp_path, Topics()) as (assistant, _):
        await assistant.close()
        assistant.indexing.begin()

        assert assistant.indexing._task is None


async def test_without_an_embedder_there_is_nothing_to_do(tmp_path: Path) -> None:
    async with await weft.open(tmp_path / "weft.db") as store:
        assistant = await weft.connect(provider=weft.ScriptedProvider(["Hi."]), store=store)
        await assistant.ask("Hello.", "chat")
        await until_indexed(assistant)
        await assistant.close()
