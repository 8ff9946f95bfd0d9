"""What has happened lately, as the store knows it."""

from datetime import UTC, datetime, timedelta

import pytest

import weft

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


async def told(store: weft.Store, agent: str, since: datetime = LONG_AGO, limit: int = 15) -> list[str]:
    entries = await store.activity.recent(agent, since=since, limit=limit)
    return [f"{entry.agent or 'system'} {entry.text}" for entry in entries]


async def test_changes_of_blocks_are_listed_for_agents_that_may_read_them(store: weft.Store) -> None:
    await store.memory.create_block("iris", "plans")
    for word in ("dive ", "swim ", "rest"):
        await store.memory.append_to_block("iris", "plans", word)
    await store.memory.undo_block("iris", "plans", is_system=True)
    await store.memory.create_block("rose", "secret")
    await store.memory.share_block("iris", "plans", "rose", weft.Permission.READ_ONLY)

    assert await told(store, "iris") == [
        "iris changed the block 'plans' 4 times",
        "system took back a change of the block 'plans'",
    ]
    assert await told(store, "rose") == [
        *await told(store, "iris"),
        "rose changed the block 'secret'",
    ]
    assert await told(store, "rose", limit=1) == ["rose changed the block 'secret'"]
    assert await told(store, "rose", limit=0) == []
    assert await told(store, "nobody") == []


async def test_changes_before_the_given_time_are_left_out(store: weft.Store) -> None:
    await store.memory.create_block("iris", "plans")

    before, after = (datetime.now(UTC) + timedelta(minutes=minutes) for minutes in (-1, 1))
    assert await told(store, "iris", since=before) == ["iris changed the block 'plans'"]
    assert await told(store, "iris", since=after) == []


@pytest.mark.parametrize("recipe", ["pattern", "weft"])
async def test_a_context_shows_changes_of_shared_blocks(store: weft.Store, recipe: str) -> None:
    await store.memory.create_block("rose", "plans")
    await store.memory.share_block("rose", "plans", "iris", weft.Permission.READ_ONLY)

    builder = weft.ContextBuilder(recipe=recipe).with_store(store).for_agent("iris")
    context = await builder.with_activity(store.activity).build("hi")

    text = " ".join(section.text for section in context.sections)
    assert "] [AGENT:rose]: changed the block 'plans'" in text
