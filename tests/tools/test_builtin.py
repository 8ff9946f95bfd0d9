"""Weft's own tools act on the caller's memory, under its permissions."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

import weft
from weft.tools.builtin import memory_tools, result_tools

from samples import user

IRIS = weft.Caller(agent_id="iris", channel="app", sender_id="me", session_id="s")


async def run(store: weft.Store, name: str, caller: weft.Caller = IRIS, **arguments: Any) -> str:
    tools = [*memory_tools(store.memory, store.recall), *result_tools(store.turns)]
    return await next(tool for tool in tools if tool.name == name).run(arguments, caller)


async def test_text_is_added_on_a_line_of_its_own(store: weft.Store) -> None:
    await store.memory.create_block("iris", "notes")

    await run(store, "memory_append", label="notes", text="one")
    told = await run(store, "memory_append", label="notes", text="two")

    assert await store.memory.get_rendered_content("iris", "notes") == "one\ntwo"
    assert told == "done: 'notes' has 7 characters now"


async def test_text_that_is_added_at_once_is_on_lines_of_its_own_too(store: weft.Store) -> None:
    await store.memory.create_block("iris", "notes")
    append = next(t for t in memory_tools(store.memory, store.recall) if t.name == "memory_append")

    await asyncio.gather(*(append.run({"label": "notes", "text": text}, IRIS) for text in "abc"))

    notes = await store.memory.get_rendered_content("iris", "notes")
    assert sorted((notes or "").splitlines()) == ["a", "b", "c"]


async def test_text_is_replaced_or_the_model_learns_that_it_is_not_there(store: weft.Store) -> None:
    await store.memory.create_block("iris", "notes")
    await run(store, "memory_append", label="notes", text="the boat is red")

    await run(store, "memory_replace", label="notes", old="red", new="blue")

    assert await store.memory.get_rendered_content("iris", "notes") == "the boat is blue"
    with pytest.raises(weft.ToolError, match="the text was not found in 'notes'"):
        await run(store, "memory_replace", label="notes", old="red", new="blue")


async def turn_of(store: weft.Store) -> weft.Caller:
    """A caller whose model was shown all blocks of iris."""
    blocks = await store.memory.rendered_blocks("iris")
    return replace(IRIS, visible_blocks={block.label: block for block in blocks})


async def test_a_rewrite_is_a_change_of_what_the_model_was_shown(store: weft.Store) -> None:
    await store.memory.create_block("iris", "notes")
    await store.memory.append_to_block("iris", "notes", "milk\nbread\n")
    caller = await turn_of(store)
    await store.memory.append_to_block("iris", "notes", "tea\n")

    answer = await run(store, "memory_rewrite", caller, label="notes", text="rye\nmilk\n")
    again = await run(store, "memory_rewrite", caller, label="notes", text="milk\ntea\n")

    assert answer.endswith("characters now, for others changed it too. It reads:\nrye\nmilk\ntea\n")
    assert again == "done: 'notes' has 9 characters now"
    assert await store.memory.get_rendered_content("iris", "notes") == "milk\ntea\n"


async def test_what_the_model_wrote_in_this_turn_is_what_it_knows(store: weft.Store) -> None:
    await store.memory.create_block("iris", "notes")
    caller = await turn_of(store)

    await run(store, "memory_append", caller, label="notes", text="milk")
    await run(store, "memory_append", caller, label="notes", text="tea")
    await run(store, "memory_replace", caller, label="notes", old="tea", new="rum")
    answer = await run(store, "memory_rewrite", caller, label="notes", text="rum, milk")

    assert answer == "done: 'notes' has 9 characters now"
    assert await store.memory.get_rendered_content("iris", "notes") == "rum, milk"


async def test_a_block_that_the_model_was_not_shown_is_not_rewritten(store: weft.Store) -> None:
    await store.memory.create_block("iris", "notes")

    with pytest.raises(weft.ToolError, match="you were not shown the block 'notes': use memory_append"):
        await run(store, "memory_rewrite", label="notes", text="new")


@pytest.mark.parametrize(
    "permission", [weft.Permission.READ_ONLY, weft.Permission.HUMAN, weft.Permission.PARTNER]
)
async def test_the_permission_of_a_block_binds_the_tools(
    store: weft.Store, permission: weft.Permission
) -> None:
    await store.memory.create_block("iris", "rules", permission=permission)

    with pytest.raises(weft.PermissionDenied):
        await run(store, "memory_append", label="rules", text="x")


async def test_an_append_block_grows_but_is_not_rewritten(store: weft.Store) -> None:
    await store.memory.create_block("iris", "diary", permission=weft.Permission.APPEND)
    await run(store, "memory_append", label="diary", text="rain")

    with pytest.raises(weft.PermissionDenied):
        await run(store, "memory_replace", label="diary", old="rain", new="sun")


async def test_another_agents_block_is_out_of_reach(store: weft.Store) -> None:
    await store.memory.create_block("rose", "secret")

    await run(store, "memory_append", label="secret", text="x")

    assert await store.memory.get_rendered_content("rose", "secret") == ""
    assert await store.memory.get_rendered_content("iris", "secret") == "x"


async def test_the_changes_of_a_block_are_listed(store: weft.Store) -> None:
    await store.memory.create_block("iris", "notes")
    for word in ("one", "two", "three"):
        await run(store, "memory_append", label="notes", text=word)

    listed = (await run(store, "memory_history", label="notes", limit=2)).splitlines()

    assert len(listed) == 2
    assert all(line.endswith("edit by iris") for line in listed)


async def test_notes_are_kept_and_found_again(store: weft.Store) -> None:
    assert (await run(store, "archival_insert", text="The marlin weighs 400 kilos.")).startswith("kept as ")

    assert "The marlin weighs 400 kilos." in await run(store, "archival_search", query="marlin")
    assert await run(store, "archival_search", query="submarine") == "(nothing found)"


async def test_only_the_callers_own_conversations_are_searched(store: weft.Store) -> None:
    for sender, text in (("me", "I saw a marlin at dawn"), ("another", "my marlin is a secret")):
        session = await store.sessions.find_or_create("app", sender, sender, agent_id="iris")
        await store.messages.append(session.id, user(text))

    found = await run(store, "conversation_search", query="marlin")

    assert "I saw a marlin at dawn" in found
    assert "secret" not in found


async def test_a_cut_result_is_read_on(store: weft.Store) -> None:
    session = await store.sessions.find_or_create("app", "c", "me")
    caller = weft.Caller(session_id=session.id)
    kept = await store.turns.save_result(session.id, "search", "x" * 20_000 + "the end")

    first = await run(store, "read_result", caller, id=kept)
    rest = await run(store, "read_result", caller, id=kept, offset=16_000)

    assert first == "x" * 16_000 + "\n[4007 more characters from offset 16000 on.]"
    assert rest == "x" * 4000 + "the end"


async def test_a_page_of_a_result_is_never_cut_itself(store: weft.Store) -> None:
    session = await store.sessions.find_or_create("app", "c", "me")
    kept = await store.turns.save_result(session.id, "search", "x" * 5000)
    [read] = result_tools(store.turns, max_chars=1000)

    page = await read.run({"id": kept}, weft.Caller(session_id=session.id))

    assert page == "x" * 900 + "\n[4100 more characters from offset 900 on.]"
