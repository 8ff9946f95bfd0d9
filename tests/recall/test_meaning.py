"""Meaning while things go wrong or change: embedders that fail, that are replaced, that are not done yet."""

import logging
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

import weft
from embedding_server import vector_of
from weft.errors import StoreError
from weft.recall.meaning import Meaning
from weft.store.base import Scope
from weft.types.search import SearchMode, SearchOptions, SearchQuery

from samples import user

ALL = Scope(everyone=True)


class Topics:
    """An embedder by topics, which fails with an error if it has one."""

    dimensions = 8

    def __init__(self, name: str = "topics", error: Exception | None = None) -> None:
        self.name, self.error, self.calls = name, error, 0

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        self.calls += 1
        if self.error is not None:
            raise self.error
        return [vector_of(text, self.dimensions) for text in texts]


async def opened(path: Path, embedder: Topics, *texts: str) -> weft.Store:
    store = await weft.open(path / "weft.db", embedder=embedder)
    session = await store.sessions.find_or_create("terminal", "chat", "owner", agent_id="weft")
    await store.messages.append(session.id, *map(user, texts))
    return store


@pytest.fixture
async def stores() -> AsyncIterator[list[weft.Store]]:
    """Stores that are closed at the end."""
    stores: list[weft.Store] = []
    yield stores
    for store in stores:
        await store.close()


def meaning_of(store: weft.Store) -> Meaning:
    assert store.meaning is not None
    return store.meaning


async def contents(store: weft.Store, text: str, mode: SearchMode = SearchMode.AUTO) -> list[str]:
    return [hit.content for hit in await store.search(SearchQuery(text=text, mode=mode), ALL)]


@pytest.mark.parametrize("error", [StoreError("It is down."), RuntimeError("no such tensor"), OSError(5)])
async def test_searches_and_recall_go_by_words_if_the_embedder_fails_and_say_so_once(
    tmp_path: Path, stores: list[weft.Store], caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    store = await opened(tmp_path, Topics(error=error), "The ship is blue.", "Some tea.")
    stores.append(store)

    for _ in range(3):
        assert await contents(store, "ship") == ["The ship is blue."]
        assert [hit.content for hit in await store.memory.search("weft", "ship")] == ["The ship is blue."]
        lines = await store.recall.recall("the ship", sender="terminal:owner", session_id="", limit=3)
        assert "The ship is blue." in [line.text for line in lines]

    warnings = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(warnings) == 1
    assert "by words alone" in warnings[0].getMessage()
    with pytest.raises(StoreError, match=r"It is down|failed"):
        await contents(store, "ship", SearchMode.VECTOR)


async def test_an_embedder_that_failed_rests_before_it_is_asked_again(
    tmp_path: Path, stores: list[weft.Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder = Topics(error=StoreError("It is down."))
    store = await opened(tmp_path, embedder, "The ship is blue.")
    stores.append(store)

    await contents(store, "ship")
    await contents(store, "tea")
    assert embedder.calls == 1

    monkeypatch.setattr("weft.recall.meaning._REST_SECONDS", -1.0)
    meaning_of(store).note_failure("again")
    embedder.error = None
    assert await contents(store, "boat") == ["The ship is blue."]
    assert meaning_of(store).failure == ""


async def test_texts_that_are_not_embedded_yet_are_found_by_words_beside_those_that_are(
    tmp_path: Path, stores: list[weft.Store]
) -> None:
    texts = [f"Line {number} about the ship." for number in range(40)]
    store = await opened(tmp_path, Topics(), *texts)
    stores.append(store)
    async for _ in meaning_of(store).catch_up(8):
        pass

    assert await meaning_of(store).count_missing() == 32
    lines = await store.recall.recall("ship line 3", sender="terminal:owner", session_id="", limit=40)
    assert texts[3] in [line.text for line in lines]
    assert (await contents(store, "ship line 3"))[0] == texts[3]


async def test_after_a_change_of_the_embedder_searches_go_on_and_vectors_are_replaced_by_and_by(
    tmp_path: Path, stores: list[weft.Store]
) -> None:
    old = await opened(tmp_path, Topics("old"), *(f"Ship {number}." for number in range(100)))
    stores.append(old)
    async for _ in meaning_of(old).catch_up():
        pass
    new = await weft.open(tmp_path / "weft.db", embedder=Topics("new"))
    stores.append(new)

    assert await meaning_of(new).count_missing() == 100
    async for _ in meaning_of(new).catch_up(10):
        pass
    assert await meaning_of(new).count_missing() == 90
    assert len(await contents(new, "ship")) == 10
    assert "Ship 3." in await contents(new, "ship 3")
    async for _ in meaning_of(new).catch_up():
        pass
    assert await meaning_of(new).count_missing() == 0
    assert len(await contents(new, "vessel", SearchMode.VECTOR)) == 10


async def test_a_program_with_the_old_embedder_does_not_take_the_index_back(
    tmp_path: Path, stores: list[weft.Store], caplog: pytest.LogCaptureFixture
) -> None:
    old = await opened(tmp_path, Topics("old"), "A ship.", "Some tea.")
    stores.append(old)
    async for _ in meaning_of(old).catch_up():
        pass
    new = await weft.open(tmp_path / "weft.db", embedder=Topics("new"))
    stores.append(new)
    async for _ in meaning_of(new).catch_up():
        pass

    assert await contents(old, "ship") == ["A ship."]
    assert [number async for number in meaning_of(old).catch_up()] == []
    assert await meaning_of(new).vectors.find_embedder() == "new"
    assert [record.message for record in caplog.records].count(
        "the embedder was changed in another program: start this one again to use it"
    ) == 1


async def test_vectors_of_another_length_under_the_same_name_break_nothing(
    tmp_path: Path, stores: list[weft.Store]
) -> None:
    embedder = Topics()
    store = await opened(tmp_path, embedder, "A ship.", "Some tea.")
    stores.append(store)
    async for _ in meaning_of(store).catch_up():
        pass
    embedder.dimensions = 16

    assert await contents(store, "ship") == ["A ship."]
    options = SearchOptions(mode=SearchMode.VECTOR)
    assert await store.memory.search("weft", "the ship", options) == []
