"""Facts change: the newest counts, older ones are told as such, and a question may ask for another time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from unittest.mock import patch

import pytest

import weft

JANUARY, MAY, NOW = (datetime(2026, month, 3, 9, tzinfo=UTC) for month in (1, 5, 9))
SENDER = "app:owner"


@pytest.fixture
async def store() -> AsyncIterator[weft.Store]:
    async with await weft.open(":memory:") as opened:
        yield opened


async def set_at(store: weft.Store, when: datetime, key: str, value: str) -> None:
    with patch("time.time", when.timestamp):
        await store.facts.set(SENDER, key, value)


async def build(store: weft.Store, message: str) -> weft.Context:
    builder = weft.ContextBuilder(recipe="weft").with_store(store).for_agent("weft")
    return await builder.for_sender("app", "owner").at(NOW).build(message)


def text_of(context: weft.Context, source: str) -> str:
    return "\n".join(section.text for section in context.sections if section.source == source)


async def test_the_newest_value_counts_and_the_one_before_is_told_with_its_end(store: weft.Store) -> None:
    for when, city in ((JANUARY, "Porto"), (JANUARY + timedelta(days=30), "Braga"), (MAY, "Lisbon")):
        await set_at(store, when, "city", city)
    await set_at(store, MAY, "cat", "Ida")

    facts = text_of(await build(store, "Hello there"), "facts")

    assert "- city: Lisbon (was: Braga, until 2026-05-03)" in facts
    assert "- cat: Ida" in facts.splitlines()
    assert "Porto" not in facts


@pytest.mark.parametrize(
    ("question", "then"),
    [
        ("Where did I live in January?", "- city: Porto (until 2026-05-03)"),
        ("¿Dónde vivía en febrero?", "- city: Porto (until 2026-05-03)"),
        ("Wo habe ich im März gewohnt?", "- city: Porto (until 2026-05-03)"),
        ("Où est-ce que j'habitais en avril ?", "- city: Porto (until 2026-05-03)"),
        ("二月的时候我住在哪里？", "- city: Porto (until 2026-05-03)"),
        ("三月はどこに住んでた？", "- city: Porto (until 2026-05-03)"),
        ("Where did I live in July?", ""),
        ("Where do I live?", ""),
    ],
)
async def test_a_question_about_another_time_shows_what_was_known_then(
    store: weft.Store, question: str, then: str
) -> None:
    await set_at(store, JANUARY, "city", "Porto")
    await set_at(store, MAY, "city", "Lisbon")

    recalled = text_of(await build(store, question), "recall")

    assert (then in recalled.splitlines()) if then else "Porto" not in recalled
    assert ("Known then" in recalled) == bool(then)


async def test_what_was_forgotten_is_never_told_as_what_was(store: weft.Store) -> None:
    await set_at(store, JANUARY, "city", "Porto")
    await set_at(store, JANUARY + timedelta(days=9), "city", "Braga")
    await store.facts.delete(SENDER, "city")
    await set_at(store, MAY, "city", "Lisbon")

    context = await build(store, "Where did I live in January?")

    assert "Lisbon" in text_of(context, "facts")
    assert "Porto" not in context.to_prompt_string()
    assert "Braga" not in context.to_prompt_string()


async def test_a_fact_of_strangers_keeps_its_mark_when_it_is_told_as_what_was(store: weft.Store) -> None:
    with patch("time.time", JANUARY.timestamp):
        await store.facts.set(SENDER, "city", "Porto", asked_by="a web page")
    await set_at(store, MAY, "city", "Lisbon")

    context = await build(store, "Where did I live in February?")

    assert context.receipt is not None
    marked = {item.source: item.origin for item in context.receipt.kept if "city" in item.title}
    assert marked == {"facts": "import", "recall": "import"}


async def test_nothing_of_another_persons_past_is_told(store: weft.Store) -> None:
    with patch("time.time", JANUARY.timestamp):
        await store.facts.set("app:bob", "city", "Porto")
    with patch("time.time", MAY.timestamp):
        await store.facts.set("app:bob", "city", "Faro")

    context = await build(store, "Where did I live in January?")

    assert "Porto" not in context.to_prompt_string()
