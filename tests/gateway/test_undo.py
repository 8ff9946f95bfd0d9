"""`/undo`: the changes of memory are taken back one by one, the newest first."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

import weft
from talking import Talk
from weft.types.person import ASSISTANT
from wired import calling

NOTHING = "There is nothing to undo."


@asynccontextmanager
async def talking(*calls: weft.Reply, played: int | None = None) -> AsyncIterator[Talk]:
    """Talk to a model that calls one tool in each turn; the first turns are `played` already."""
    script = [part for call in calls for part in (call, "Done.")]
    app = await weft.connect(provider=weft.ScriptedProvider(script))
    talk = Talk(app)
    for _ in calls[:played]:
        await talk.say("please")
    yield talk
    await app.close()


def append(label: str, text: str) -> weft.Reply:
    return calling("memory_append", label=label, text=text)


async def memory(talk: Talk) -> dict[str, str]:
    """Return the blocks that hold something, and the facts."""
    store = await talk.app.store.get()
    blocks = {block.label: block.content for block in await store.memory.rendered_blocks(ASSISTANT)}
    facts = {fact.key: fact.value for fact in await store.facts.list("terminal:owner")}
    return {name: text for name, text in (blocks | facts).items() if text}


async def undone(talk: Talk, times: int) -> list[dict[str, str]]:
    """Return what memory holds after each `/undo`."""
    states = []
    for _ in range(times):
        await talk.say("/undo")
        states.append(await memory(talk))
    return states


async def test_each_undo_takes_back_one_more_change_in_reverse_order() -> None:
    async with talking(append("human", "One"), append("notes", "Two"), append("human", "Three")) as talk:
        assert await undone(talk, 3) == [{"human": "One", "notes": "Two"}, {"human": "One"}, {}]
        assert await talk.say("/undo") == NOTHING


async def test_blocks_and_facts_are_taken_back_by_the_time_of_their_changes() -> None:
    changes = (
        calling("remember_fact", key="city", value="Lisbon"),
        append("notes", "Two"),
        calling("forget_fact", key="city"),
        calling("remember_fact", key="city", value="Porto"),
        append("human", "Three"),
    )
    async with talking(*changes) as talk:
        assert await undone(talk, 5) == [
            {"notes": "Two", "city": "Porto"},
            {"notes": "Two"},
            {"notes": "Two", "city": "Lisbon"},
            {"city": "Lisbon"},
            {},
        ]
        assert await talk.say("/undo") == NOTHING


async def test_a_change_after_an_undo_is_the_next_to_be_taken_back() -> None:
    changes = (append("human", "One"), append("notes", "Two"), append("human", "Three"))
    async with talking(*changes, played=2) as talk:
        await talk.say("/undo")
        await talk.say("please")

        assert await undone(talk, 2) == [{"human": "One"}, {}]


async def test_a_block_that_the_model_made_is_removed_with_its_first_text() -> None:
    create = calling("memory_create", label="cats", text="Miso is grey.")
    async with talking(append("notes", "One"), create, append("cats", "Rex too.")) as talk:
        first, second = await talk.say("/undo"), await talk.say("/undo")

        assert "It reads now:\n\n```\nMiso is grey.\n```" in first
        assert second == "The memory block **cats** was removed again."
        assert await memory(talk) == {"notes": "One"}
        labels = [info.label for info in await (await talk.app.store.get()).memory.list_blocks(ASSISTANT)]
        assert "cats" not in labels


async def test_a_block_that_a_person_made_stays() -> None:
    async with talking() as talk:
        store = await talk.app.store.get()
        await store.memory.by("owner", "command line").create_block(ASSISTANT, "mine", text="Mine.")

        assert await talk.say("/undo") == NOTHING
        assert await talk.say("/undo mine") == "There is nothing to undo in mine."
        assert await memory(talk) == {"mine": "Mine."}


async def test_undo_with_a_label_changes_that_block_and_shows_its_lines_as_they_are() -> None:
    lines = [append("human", text) for text in ("One", "Two", "Three")]
    async with talking(*lines, append("notes", "Four")) as talk:
        told = await talk.say("/undo human")

        assert told.endswith("It reads now:\n\n```\nOne\nTwo\n```")
        assert await memory(talk) == {"human": "One\nTwo", "notes": "Four"}
        with pytest.raises(weft.StoreError, match="There is no block 'nope': `/memory` lists them"):
            await talk.say("/undo nope")


@pytest.mark.parametrize("permission", [weft.Permission.HUMAN, weft.Permission.APPEND])
async def test_a_person_who_says_undo_agrees_to_the_change(permission: weft.Permission) -> None:
    async with talking() as talk:
        store = await talk.app.store.get()
        await store.memory.create_block(ASSISTANT, "about", permission=permission)
        await store.memory.append_to_block(ASSISTANT, "about", "Ada", is_system=True)

        assert "The last change of **about** was taken back" in await talk.say("/undo")
