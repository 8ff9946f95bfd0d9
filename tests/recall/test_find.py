"""Search by words, by meaning and by both, among what may be found."""

import logging
import math
import struct
from collections.abc import AsyncIterator, Sequence

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

import weft
from weft.recall.find import Finder
from weft.recall.meaning import Meaning
from weft.recall.wordllama import WordLlamaEmbedder
from weft.store.base import Scope
from weft.store.sqlite.backend import SqliteBackend
from weft.types.search import SearchContentType, SearchMode, SearchOptions

from samples import assistant, user

IRIS = Scope(owner="iris")
VECTOR, HYBRID = SearchOptions(mode=SearchMode.VECTOR), SearchOptions(mode=SearchMode.HYBRID)
TOPICS = {
    "boat": 0, "ship": 0, "vessel": 0, "marlin": 1, "fish": 1, "tea": 2, "coffee": 2, "drink": 2,
    "rain": 3, "storm": 3, "weather": 3,
}  # fmt: skip


class Topics:
    """An embedder for tests: a direction for each topic that a text names."""

    dimensions = 8

    def __init__(self, name: str = "topics") -> None:
        self.name = name
        self.asked: list[str] = []

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        self.asked += texts
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> list[float]:
        vector = [-0.01] * self.dimensions
        for word in text.lower().replace(".", " ").split():
            if word in TOPICS:
                vector[TOPICS[word]] += 1.0
        return vector


@pytest.fixture
async def store() -> AsyncIterator[SqliteBackend]:
    opened = SqliteBackend(":memory:")
    yield opened
    await opened.close()


def finder(store: SqliteBackend, embedder: Topics | None = None) -> Finder:
    return Finder(store.search, Meaning(store.vectors, embedder) if embedder else None)


async def catch_up(store: SqliteBackend, embedder: Topics, limit: int | None = None) -> int:
    return sum([number async for number in Meaning(store.vectors, embedder).catch_up(limit)])


async def hits(finder: Finder, query: str, options: SearchOptions, scope: Scope = IRIS) -> list[str]:
    return [hit.content for hit in await finder.search(query, scope, options)]


async def test_meaning_finds_what_has_no_word_in_common(store: SqliteBackend) -> None:
    await store.archive.insert("iris", "The ship leaves at seven")
    await store.archive.insert("iris", "Green tea at noon")
    by_meaning = finder(store, Topics())

    assert await hits(by_meaning, "which boat", SearchOptions(mode=SearchMode.FTS)) == []
    assert (await hits(by_meaning, "which boat", VECTOR))[0] == "The ship leaves at seven"
    assert (await hits(by_meaning, "which boat", HYBRID))[0] == "The ship leaves at seven"
    assert (await hits(by_meaning, "which boat", SearchOptions()))[0] == "The ship leaves at seven"


async def test_a_hit_says_how_it_was_found_and_what_its_score_is_made_of(store: SqliteBackend) -> None:
    await store.archive.insert("iris", "The boat is a ship")
    with_meaning, without = finder(store, Topics()), finder(store)

    modes = {}
    for mode in SearchMode:
        if mode != SearchMode.VECTOR:
            (hit,) = await without.search("boat", IRIS, SearchOptions(mode=mode))
            assert (hit.mode, set(hit.parts)) == (SearchMode.FTS, {"words"})
        (hit,) = await with_meaning.search("boat", IRIS, SearchOptions(mode=mode))
        modes[mode] = (hit.mode, set(hit.parts), round(hit.score, 6))

    assert modes == {
        SearchMode.FTS: (SearchMode.FTS, {"words"}, 1.0),
        SearchMode.VECTOR: (SearchMode.VECTOR, {"meaning"}, 1.0),
        SearchMode.HYBRID: (SearchMode.HYBRID, {"words", "meaning"}, 1.0),
        SearchMode.AUTO: (SearchMode.HYBRID, {"words", "meaning"}, 1.0),
    }


async def test_without_an_embedder_hybrid_says_that_it_is_fts(
    store: SqliteBackend, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        await finder(store).search("boat", IRIS, SearchOptions())
        assert caplog.text == ""
        await finder(store).search("boat", IRIS, HYBRID)

    assert "no embedder, so this search is by words only (`fts`)" in caplog.text


async def test_without_an_embedder_search_by_meaning_is_an_error_with_a_remedy(store: SqliteBackend) -> None:
    with pytest.raises(weft.StoreError, match="needs an embedder: set one, or use the mode `fts`"):
        await finder(store).search("boat", IRIS, VECTOR)


async def test_each_text_is_embedded_once_and_again_only_when_it_changes(store: SqliteBackend) -> None:
    embedder = Topics()
    by_meaning = finder(store, embedder)
    first = await store.archive.insert("iris", "a boat")
    await store.archive.insert("iris", "some tea")

    assert await catch_up(store, embedder) == 2
    assert await catch_up(store, embedder) == 0
    await store.archive.insert("iris", "a storm")
    await store.archive.delete(first)
    assert await catch_up(store, embedder) == 1

    assert embedder.asked == ["some tea", "a boat", "a storm"], "the newest first"
    assert sorted(await hits(by_meaning, "vessel", VECTOR)) == ["a storm", "some tea"]


async def test_another_embedder_starts_anew(store: SqliteBackend) -> None:
    await store.archive.insert("iris", "a boat")
    await catch_up(store, Topics("one"))

    other = Topics("two")
    assert await catch_up(store, other) == 1
    await store.vectors.save("one", [(1, b"late")])

    assert await hits(finder(store, other), "ship", VECTOR) == ["a boat"]


async def test_an_embedder_that_gives_something_else_is_named(store: SqliteBackend) -> None:
    class Broken(Topics):
        async def embed(self, texts: Sequence[str]) -> list[list[float]]:
            return [[1.0]]

    await store.archive.insert("iris", "a boat")

    with pytest.raises(weft.StoreError, match="'broken' did not give a vector of 8 numbers"):
        await finder(store, Broken("broken")).search("ship", IRIS, VECTOR)


async def test_meaning_respects_owners_sources_and_the_session_left_out(store: SqliteBackend) -> None:
    mine = await store.sessions.new("telegram", "c1", "42", agent_id="iris")
    now = await store.sessions.new("telegram", "c2", "42", agent_id="iris")
    theirs = await store.sessions.new("telegram", "c3", "43", agent_id="rose")
    await store.messages.append(mine.id, user("my boat"), assistant("a fine ship"))
    await store.messages.append(now.id, user("boat now"))
    await store.messages.append(theirs.id, user("their boat"))
    await store.archive.insert("iris", "noted vessel")
    by_meaning = finder(store, Topics())
    messages = SearchOptions(mode=SearchMode.VECTOR, content_types=(SearchContentType.MESSAGES,))

    elsewhere = Scope(owner="telegram:42", without_session=now.id)
    assert sorted(await hits(by_meaning, "ship", messages, elsewhere)) == ["a fine ship", "my boat"]
    assert sorted(await hits(by_meaning, "ship", VECTOR)) == [
        *("a fine ship", "boat now", "my boat", "noted vessel"),
    ]
    assert await hits(by_meaning, "ship", VECTOR, Scope(owner="rose")) == ["their boat"]
    assert await hits(by_meaning, "ship", VECTOR, Scope(owner="nobody")) == []
    assert len(await hits(by_meaning, "ship", VECTOR, Scope(everyone=True))) == 5


async def test_a_shared_block_is_found_by_both_and_no_longer_when_the_share_ends() -> None:
    async with await weft.open(":memory:", embedder=Topics()) as store:
        await store.memory.create_block("iris", "plans")
        await store.memory.update_block_text("iris", "plans", "take the vessel")
        await store.memory.share_block("iris", "plans", "rose", weft.Permission.READ_ONLY)

        for query in ("ship", "vessel"):
            assert [hit.content for hit in await store.memory.search("rose", query)] == ["take the vessel"]
        await store.memory.unshare_block("iris", "plans", "rose")
        assert await store.memory.search("rose", "ship vessel") == []


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(st.integers(-9, 9), min_size=8, max_size=8).filter(any), min_size=1, max_size=12))
async def test_the_nearest_are_those_of_an_exact_look_at_all(vectors: list[list[int]]) -> None:
    store = SqliteBackend(":memory:")
    for number in range(len(vectors)):
        await store.archive.insert("iris", str(number))
    items = await store.vectors.list_missing("exact", 100)
    pack = struct.Struct("<8f").pack
    await store.vectors.save(
        "exact", [(item, pack(*v)) for (item, _), v in zip(reversed(items), vectors, strict=True)]
    )

    near = await store.vectors.nearest(
        "exact", pack(*vectors[0]), IRIS, sources=tuple(SearchContentType), limit=3
    )

    def cosine(other: list[int]) -> float:
        return sum(a * b for a, b in zip(vectors[0], other, strict=True)) / (
            math.hypot(*vectors[0]) * math.hypot(*other)
        )

    for candidate in near:
        assert candidate.meaning == pytest.approx(cosine(vectors[int(candidate.content)]), abs=1e-3)
    assert [c.meaning for c in near] == sorted((c.meaning for c in near), key=lambda m: -(m or 0))
    assert len(near) == len(vectors)
    await store.close()


async def test_the_embedder_that_comes_along_knows_like_from_unlike(store: SqliteBackend) -> None:
    for text in (
        "We went sailing on a small vessel.",
        "The tax form is due in May.",
        "She plays the violin.",
    ):
        await store.archive.insert("iris", text)
    by_meaning = Finder(store.search, Meaning(store.vectors, WordLlamaEmbedder()))

    assert (await hits(by_meaning, "boat trip", VECTOR))[0] == "We went sailing on a small vessel."
    assert (await hits(by_meaning, "musical instrument", VECTOR))[0] == "She plays the violin."
    assert len(await hits(by_meaning, "", VECTOR)) == 3
