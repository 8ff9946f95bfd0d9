"""A long query costs no more than a short one: the rarest of its words are looked for."""

import re
import threading
from collections.abc import AsyncIterator
from typing import Any

import apsw
import pytest

from weft.recall import conversation_recall, find, fuse, pieces, rank
from weft.recall.conversation_recall import ConversationRecall
from weft.recall.find import Finder
from weft.store.base import Scope
from weft.store.sqlite import lines, search
from weft.store.sqlite.backend import SqliteBackend
from weft.types.search import SearchContentType, SearchOptions
from weft.types.tokenize import MOST_TERMS, query_part, words

from samples import user

IRIS = Scope(owner="iris")
ALL = tuple(SearchContentType)


@pytest.fixture
async def store() -> AsyncIterator[SqliteBackend]:
    opened = SqliteBackend(":memory:")
    for n in range(30):
        await opened.archive.insert("iris", " ".join(f"common{k}" for k in range(100)) + f" text{n}")
    await opened.archive.insert("iris", "A zebra eats.")
    yield opened
    await opened.close()


@pytest.fixture
def matches(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The queries that reach the index."""
    written: list[str] = []
    fts_query = search.fts_query

    def noted(db: apsw.Connection, query: str) -> str:
        written.append(fts_query(db, query))
        return written[-1]

    monkeypatch.setattr(search, "fts_query", noted)
    return written


async def test_the_64_rarest_terms_of_a_long_query_are_searched_for(
    store: SqliteBackend, matches: list[str]
) -> None:
    query = " ".join(f"common{n}" for n in range(100)) + " zebras text7 unheard"

    hits = await store.search.candidates(query, IRIS, sources=ALL, limit=2)

    terms = matches[0].split(" OR ")
    assert len(terms) == MOST_TERMS == 64
    assert terms[:2] == ['"zebras"', '"text7"']
    assert '"unheard"' not in terms
    assert hits[0].content == "A zebra eats."


async def test_a_short_query_is_searched_for_as_it_is(store: SqliteBackend, matches: list[str]) -> None:
    await store.search.candidates("what zebra unheard com*", IRIS, sources=ALL, limit=2)
    assert matches == ['"zebra" OR "unheard" OR "com" *']


async def test_a_query_of_megabytes_is_cut_before_its_words_are_looked_at(
    store: SqliteBackend, matches: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []

    def noted(text: str) -> list[str]:
        sizes.append(len(text))
        return words(text)

    for module in (search, rank, fuse):
        monkeypatch.setattr(module, "words", noted)
    query = "zebra " + "word " * 800_000 + "text7"

    hits = await Finder(store.search).search(query, IRIS, SearchOptions(limit=3))
    await ConversationRecall(store.lines).recall(query, sender="iris", session_id="", limit=3)

    assert {hit.content[-5:] for hit in hits} == {"eats.", "text7"}
    assert max(sizes) <= len(query_part(query)) < 40_000


def test_ranking_compares_the_64_rarest_terms_of_a_query() -> None:
    common = [f"common{n}" for n in range(100)]
    texts = [" ".join(common)] * 5 + ["zebra"]
    scores = rank.Index(texts).relevance(" ".join([*common, "zebra"]))
    all_terms = rank.Index(texts).relevance(" ".join(common[:63]))

    assert scores[-1] > 0
    assert scores[0] == pytest.approx(all_terms[0])
    best = pieces.best_entries(lambda: [texts], " ".join([*common, "zebra"]), 6)
    assert best.entries.index("zebra") in (0, 5)


def test_a_long_query_makes_no_long_pattern(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    compile_ = re.compile

    def noted(pattern: str, flags: int = 0) -> Any:
        sizes.append(pattern.count("|") + 1)
        return compile_(pattern, flags)

    monkeypatch.setattr(re, "compile", noted)
    query = " ".join(f"word{n}" for n in range(1000))

    fuse.excerpt(query, "nothing here " * 100)
    pieces.best_entries(lambda: [["word1 here", "nothing"]], query, 1)

    assert sizes
    assert max(sizes) <= MOST_TERMS


def test_the_excerpt_of_a_long_text_is_looked_for_in_slices() -> None:
    text = "nothing " * 50_000 + "the zebra eats" + " nothing" * 1000
    assert "zebra" in fuse.excerpt("zebra", text)
    assert "zebra" not in fuse.excerpt("zebra", "nothing " * 200_000 + "zebra")


async def test_only_a_few_names_are_compared_each_with_a_bounded_number_of_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared: list[int] = []
    opened = SqliteBackend(":memory:")
    session = await opened.sessions.new("app", "talk", "iris", agent_id="weft")
    for n in range(8):
        near = " ".join(f"Zor{n}{chr(97 + k % 26)}{chr(97 + k // 26)}k" for k in range(200))
        await opened.messages.append(session.id, user(f"The boat of {near}."))

    def noted(name: str, near: list[str], *_: Any) -> list[str]:
        compared.append(len(near))
        return []

    monkeypatch.setattr(lines, "get_close_matches", noted)
    names = " and ".join(f"Zor{chr(97 + k)}eek" for k in range(20))
    recall = ConversationRecall(opened.lines)

    await recall.recall(f"Is the boat with {names}?", sender="app:iris", session_id="", limit=10)
    await opened.close()

    assert compared == [500] * 4


async def test_large_candidates_are_ranked_in_a_thread(
    store: SqliteBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await store.sessions.find_or_create("telegram", "c", "42")
    await store.messages.append(session.id, user("zebra " + "word " * 20_000))
    threads: set[int] = set()
    for module, name in ((find, "ranked"), (conversation_recall, "rank")):
        work = getattr(module, name)

        def noted(*args: Any, work: Any = work) -> Any:
            threads.add(threading.get_ident())
            return work(*args)

        monkeypatch.setattr(module, name, noted)

    scope = Scope(owner="telegram:42")
    assert await Finder(store.search).search("zebra", scope, SearchOptions())
    assert await ConversationRecall(store.lines).recall("zebra", sender="telegram:42", session_id="", limit=3)

    assert threads
    assert threading.get_ident() not in threads
