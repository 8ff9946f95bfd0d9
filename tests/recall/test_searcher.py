"""The search that people use: whose things it finds, and that it is bounded."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import weft
from weft.errors import ConfigError
from weft.store.base import Scope
from weft.types.search import FactType, SearchContentType, SearchQuery

from samples import user

ALL = Scope(everyone=True)


async def said(store: weft.Store, sender: str, *messages: weft.Message) -> str:
    session = await store.sessions.find_or_create("telegram", sender, sender, agent_id=f"weft/{sender}")
    await store.messages.append(session.id, *messages)
    return session.id


async def contents(store: weft.Store, text: str, scope: Scope, **more: Any) -> list[str]:
    return [hit.content for hit in await store.search(SearchQuery(text=text, **more), scope)]


async def test_a_person_finds_what_is_theirs_and_the_operator_everything(store: weft.Store) -> None:
    for name in ("1", "2"):
        await said(store, name, user(f"The boat of {name}."))
        await store.facts.set(f"telegram:{name}", "boat", f"number {name}")
        await store.memory.insert_archival(f"weft/telegram:{name}", f"A note on the boat of {name}.")

    own = await contents(store, "boat", Scope(owner="weft/telegram:1"))
    everything = await contents(store, "boat", ALL)

    assert set(own) == {"The boat of 1.", "boat: number 1", "A note on the boat of 1."}
    assert len(everything) == 6


async def test_facts_follow_people_who_are_linked(store: weft.Store) -> None:
    await store.facts.set("telegram:1", "harbour", "Lagos")
    await store.people.link("telegram:1", "ada")

    assert await contents(store, "lagos", Scope(owner="weft/ada")) == ["harbour: Lagos"]
    assert await contents(store, "lagos", Scope(owner="telegram:1")) == ["harbour: Lagos"]
    assert await contents(store, "lagos", Scope(owner="weft")) == []
    assert await contents(store, "lag*", ALL) == ["harbour: Lagos"]
    assert await contents(store, "lagos", ALL, sources=(SearchContentType.MESSAGES,)) == []


async def test_a_filter_finds_what_many_better_matches_hide(store: weft.Store) -> None:
    old, new = datetime(2020, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)
    many = [
        weft.Message(role="user", content="boat", timestamp=old + timedelta(hours=at)) for at in range(600)
    ]
    await said(store, "1", *many)
    late = weft.Message(role="user", content="a boat, among many other things that are new", timestamp=new)
    await said(store, "2", late)
    only = await store.searcher.read_filter(ALL, since="2025-01-01", now=new)

    assert await contents(store, "boat", Scope(everyone=True, only=only)) == [late.content]
    assert len(await contents(store, "boat", ALL, limit=10_000)) == 200


async def test_speakers_of_everyone_are_known(store: weft.Store) -> None:
    for number, name in enumerate(("Ada Lovelace", "Grace Hopper")):
        message = weft.Message(role="user", content=f"Line {number} on engines.", name=name)
        await said(store, str(number), message)

    hits = await store.search(SearchQuery(text="what did Grace say on engines"), ALL)
    only = await store.searcher.read_filter(ALL, who="hopper")
    own = Scope(owner="weft/telegram:0")

    assert (hits[0].speaker, hits[0].reasons["speaker"] > 0) == ("Grace Hopper", True)
    assert only.speaker == "Grace Hopper"
    with pytest.raises(ConfigError, match="Nobody called 'hopper'") as refusal:
        await store.searcher.read_filter(own, who="hopper")
    assert "Grace" not in str(refusal.value)  # a person does not learn whom others talk with
    with pytest.raises(ConfigError):
        await store.searcher.read_filter(own, who="telegram:1")


async def test_facts_of_the_past_stand_behind_those_of_today(store: weft.Store) -> None:
    for city in ("Lisbon", "Porto", "Lisbon again"):
        await store.facts.set("telegram:1", "city", city)

    hits = await store.search(SearchQuery(text="city", sources=(FactType.FACTS,)), ALL)

    assert [hit.content for hit in hits] == ["city: Lisbon again", "city: Porto", "city: Lisbon"]
    assert [hit.ended_at is None for hit in hits] == [True, False, False]
