"""Pattern's memory store: blocks, the archive, search, sharing, permissions and what is durable."""

import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import weft
from weft.memory.document import Document
from weft.memory.store import MemoryStore
from weft.recall.find import Finder
from weft.store.sqlite.backend import SqliteBackend

CORE, WORKING = weft.BlockType.CORE, weft.BlockType.WORKING
ARCHIVAL, LOG = weft.BlockType.ARCHIVAL, weft.BlockType.LOG
BLOCKS, ARCHIVE = weft.SearchContentType.BLOCKS, weft.SearchContentType.ARCHIVAL
MESSAGES = weft.SearchContentType.MESSAGES


async def held(store: weft.Store, label: str, agent: str = "iris") -> Document:
    document = await store.memory.get_block(agent, label)
    assert document is not None
    return document


async def filled(
    store: weft.Store,
    label: str,
    text: str,
    *,
    block_type: weft.BlockType = WORKING,
    permission: weft.Permission = weft.Permission.READ_WRITE,
    pinned: bool = False,
) -> str:
    made = await store.memory.create_block(
        "iris", label, block_type=block_type, permission=permission, pinned=pinned
    )
    await store.memory.update_block_text("iris", label, text, is_system=True)
    return made


def builder(store: weft.Store, config: weft.ContextConfig | None = None) -> weft.ContextBuilder:
    return (
        weft.ContextBuilder(config=config, recipe="pattern")
        .with_store(store)
        .for_agent("iris")
        .with_base_instructions("BASE")
    )


async def prompt(store: weft.Store) -> str:
    return (await builder(store).build("hi")).system_prompt


# --- blocks


async def test_P8_a_block_can_be_made_read_listed_and_deleted(store: weft.Store) -> None:
    made = await store.memory.create_block(
        "iris", "notes", description="What I know.", permission=weft.Permission.ADMIN
    )

    assert isinstance(await held(store, "notes"), Document)
    (info,) = await store.memory.list_blocks("iris")
    assert (info.id, info.label, info.description) == (made, "notes", "What I know.")
    await store.memory.delete_block("iris", "notes")
    assert await store.memory.get_block("iris", "notes") is None
    assert await store.memory.list_blocks("iris") == []
    assert await store.memory.get_rendered_content("iris", "notes") is None


async def test_P8_a_block_has_these_values_unless_others_are_given(store: weft.Store) -> None:
    await store.memory.create_block("iris", "notes")

    (info,) = await store.memory.list_blocks("iris")

    assert (info.description, info.block_type, info.permission) == ("", WORKING, weft.Permission.READ_WRITE)
    assert (info.char_limit, info.pinned) == (5000, False)
    assert (await held(store, "notes")).schema == weft.TextSchema()


async def test_P8_a_block_that_is_not_there_is_none_and_not_an_error(store: weft.Store) -> None:
    await store.memory.create_block("iris", "notes")

    assert await store.memory.get_block("iris", "other") is None
    assert await store.memory.get_block("rose", "notes") is None
    assert await store.memory.list_blocks("rose") == []


async def test_P8_two_agents_may_use_one_label_for_blocks_of_their_own(store: weft.Store) -> None:
    mine = await store.memory.create_block("iris", "notes")
    hers = await store.memory.create_block("rose", "notes")
    await store.memory.update_block_text("iris", "notes", "mine")

    assert mine != hers
    assert await store.memory.get_rendered_content("rose", "notes") == ""


async def test_P8_blocks_can_be_listed_by_their_type(store: weft.Store) -> None:
    for block_type in weft.BlockType:
        await store.memory.create_block("iris", f"a {block_type}", block_type=block_type)

    for block_type in weft.BlockType:
        (info,) = await store.memory.list_blocks_by_type("iris", block_type)
        assert (info.label, info.block_type) == (f"a {block_type}", block_type)
    assert len(await store.memory.list_blocks("iris")) == 4
    assert await store.memory.list_blocks_by_type("rose", CORE) == []


async def test_P8_a_label_is_free_again_after_its_block_was_deleted(store: weft.Store) -> None:
    first = await filled(store, "notes", "old")
    await store.memory.delete_block("iris", "notes", is_system=True)

    second = await store.memory.create_block("iris", "notes")

    assert first != second
    assert await store.memory.get_rendered_content("iris", "notes") == ""


async def test_P9_text_can_be_set_appended_and_replaced(store: weft.Store) -> None:
    await store.memory.create_block("iris", "notes")

    await store.memory.update_block_text("iris", "notes", "The boat is Marlin.")
    await store.memory.append_to_block("iris", "notes", " Pier 4.")

    assert await store.memory.replace_in_block("iris", "notes", "Pier 4", "Pier 5") is True
    assert await store.memory.replace_in_block("iris", "notes", "Pier 4", "Pier 6") is False
    assert await store.memory.get_rendered_content("iris", "notes") == "The boat is Marlin. Pier 5."
    assert await store.memory.get_rendered_content("iris", "other") is None


async def test_P9_writing_to_a_block_that_is_not_there_is_an_error(store: weft.Store) -> None:
    with pytest.raises(weft.StoreError):
        await store.memory.update_block_text("iris", "gone", "x")
    with pytest.raises(weft.StoreError):
        await store.memory.append_to_block("iris", "gone", "x")
    with pytest.raises(weft.StoreError):
        await store.memory.replace_in_block("iris", "gone", "x", "y")


async def test_P9_writes_are_durable_when_they_return(tmp_path: Path) -> None:
    async with await weft.open(tmp_path / "w.db") as one, await weft.open(tmp_path / "w.db") as two:
        await one.memory.create_block("iris", "notes")
        await one.memory.update_block_text("iris", "notes", "a")
        assert await two.memory.get_rendered_content("iris", "notes") == "a"
        await one.memory.append_to_block("iris", "notes", "b")
        assert await two.memory.get_rendered_content("iris", "notes") == "ab"


async def test_P9_edits_of_a_document_are_durable_once_the_block_is_persisted(tmp_path: Path) -> None:
    async with await weft.open(tmp_path / "weft.db") as store:
        await store.memory.create_block("iris", "notes")
        (await held(store, "notes")).set_text("kept")
        await store.memory.persist_block("iris", "notes")

    async with await weft.open(tmp_path / "weft.db") as store:
        assert await store.memory.get_rendered_content("iris", "notes") == "kept"


async def test_P9_text_over_the_limit_of_the_block_is_refused_and_nothing_changes(store: weft.Store) -> None:
    await store.memory.create_block("iris", "notes")
    await store.memory.update_block_text("iris", "notes", "x" * 5000)

    with pytest.raises(weft.LimitExceeded):
        await store.memory.append_to_block("iris", "notes", "y")
    with pytest.raises(weft.LimitExceeded):
        await store.memory.update_block_text("iris", "notes", "y" * 5001)
    with pytest.raises(weft.LimitExceeded):
        await store.memory.replace_in_block("iris", "notes", "x", "yy")

    assert await store.memory.get_rendered_content("iris", "notes") == "x" * 5000


# --- the archive


async def test_P10_the_archive_is_apart_from_the_blocks(store: weft.Store) -> None:
    note = await store.memory.insert_archival("iris", "Marlin was built in 1998.", {"by": "Clara", "n": [1]})

    (entry,) = await store.memory.search_archival("iris", "marlin", 5)

    assert (entry.id, entry.content) == (note, "Marlin was built in 1998.")
    assert entry.metadata == {"by": "Clara", "n": [1]}
    assert entry.created_at is not None
    assert await store.memory.list_blocks("iris") == []


async def test_P10_the_archive_gives_at_most_the_limit_and_the_best_first(store: weft.Store) -> None:
    await store.memory.insert_archival("iris", "a long note on many things, one of which is a marlin")
    await store.memory.insert_archival("iris", "marlin marlin")
    await store.memory.insert_archival("iris", "marlin and tuna and cod and eel")
    await store.memory.insert_archival("rose", "marlin of another agent")

    found = await store.memory.search_archival("iris", "marlin", 2)

    assert len(found) == 2
    assert found[0].score >= found[1].score
    assert len(await store.memory.search_archival("iris", "marlin", 10)) == 3


async def test_P10_metadata_is_optional_and_a_deleted_note_is_not_found(store: weft.Store) -> None:
    note = await store.memory.insert_archival("iris", "Marlin is blue.")
    kept = await store.memory.insert_archival("iris", "Marlin is fast.")

    await store.memory.delete_archival(note)

    found = await store.memory.search_archival("iris", "marlin", 5)
    assert [(entry.id, bool(entry.metadata)) for entry in found] == [(kept, False)]


# --- search


async def ocean(store: weft.Store) -> None:
    """One message, one block and one note of Iris, and one note of Rose, all on the marlin."""
    session = await store.sessions.find_or_create("telegram", "c", "42", agent_id="iris")
    await store.messages.append(session.id, weft.Message(role="user", content="the marlin swims"))
    await filled(store, "boat", "Marlin is at pier 4")
    await store.memory.insert_archival("iris", "Marlin was built in 1998")
    await store.memory.insert_archival("rose", "Rose saw a marlin")


async def test_P11_one_search_ranks_every_content_type_in_one_list(store: weft.Store) -> None:
    await ocean(store)

    found = await store.memory.search("iris", "marlin")

    assert {hit.source for hit in found} == {MESSAGES, BLOCKS, ARCHIVE}
    assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)
    assert all(hit.id and hit.content and hit.snippet for hit in found)
    assert len(found) == 3


async def test_P11_an_agent_does_not_find_what_is_anothers(store: weft.Store) -> None:
    await ocean(store)

    assert [hit.content for hit in await store.memory.search("rose", "marlin")] == ["Rose saw a marlin"]
    assert await store.memory.search("lily", "marlin") == []


async def test_P11_P12_an_agent_finds_what_is_shared_with_it(store: weft.Store) -> None:
    await ocean(store)
    await store.memory.share_block("iris", "boat", "lily", weft.Permission.READ_ONLY)

    assert [hit.content for hit in await store.memory.search("lily", "marlin")] == ["Marlin is at pier 4"]

    await store.memory.unshare_block("iris", "boat", "lily")
    assert await store.memory.search("lily", "marlin") == []


async def test_P11_searching_everything_needs_the_rights_of_an_operator(store: weft.Store) -> None:
    await ocean(store)

    with pytest.raises(weft.PermissionDenied):
        await store.memory.search_all("marlin", weft.SearchOptions())

    everything = await store.memory.search_all("marlin", weft.SearchOptions(), operator=True)
    assert len(everything) == 4


async def test_P36_the_options_say_which_content_and_how_much(store: weft.Store) -> None:
    await ocean(store)

    for content_type in weft.SearchContentType:
        found = await store.memory.search("iris", "marlin", weft.SearchOptions(content_types=(content_type,)))
        assert [hit.source for hit in found] == [content_type]
    assert len(await store.memory.search("iris", "marlin", weft.SearchOptions(limit=2))) == 2


def test_P36_the_options_are_auto_everything_and_ten_unless_told() -> None:
    options = weft.SearchOptions()

    assert options.mode is weft.SearchMode.AUTO
    assert set(options.content_types) == set(weft.SearchContentType)
    assert options.limit == 10


@pytest.mark.parametrize("mode", [weft.SearchMode.HYBRID, weft.SearchMode.AUTO])
async def test_P36_without_an_embedder_the_words_decide(store: weft.Store, mode: weft.SearchMode) -> None:
    await ocean(store)

    by_words = await store.memory.search("iris", "marlin pier", weft.SearchOptions(mode=weft.SearchMode.FTS))
    found = await store.memory.search("iris", "marlin pier", weft.SearchOptions(mode=mode))

    assert by_words[0].content == "Marlin is at pier 4"
    assert [hit.id for hit in found] == [hit.id for hit in by_words]


async def test_P36_by_meaning_without_an_embedder_is_an_error_with_a_remedy(store: weft.Store) -> None:
    await ocean(store)

    with pytest.raises(weft.WeftError, match="embedder"):
        await store.memory.search("iris", "marlin", weft.SearchOptions(mode=weft.SearchMode.VECTOR))


@pytest.mark.parametrize(
    "query", ['"', "marlin OR NOT (", "a:b", "*", "NEAR(", "'; DROP TABLE blocks; --", ""]
)
async def test_P11_P36_no_query_is_taken_as_syntax(store: weft.Store, query: str) -> None:
    await ocean(store)

    await store.memory.search("iris", query, weft.SearchOptions(mode=weft.SearchMode.FTS))

    assert len(await store.memory.search("iris", "marlin")) == 3


async def test_P11_search_sees_the_newest_text_of_a_block(store: weft.Store) -> None:
    await filled(store, "boat", "Marlin is at pier 4")
    await store.memory.update_block_text("iris", "boat", "Dorado is at pier 4")

    assert await store.memory.search("iris", "marlin") == []
    assert len(await store.memory.search("iris", "dorado")) == 1


# --- sharing


async def test_P12_a_shared_block_is_listed_and_read_with_the_permission_of_the_share(
    store: weft.Store,
) -> None:
    made = await filled(store, "team", "tanks")
    await store.memory.share_block("iris", "team", "rose", weft.Permission.APPEND)

    (listed,) = await store.memory.list_shared_blocks("rose")
    shared = await store.memory.get_shared_block("rose", "iris", "team")

    assert (listed.owner, listed.label, listed.block_id) == ("iris", "team", made)
    assert listed.permission is weft.Permission.APPEND
    assert shared is not None
    assert (shared.permission, shared.render()) == (weft.Permission.APPEND, "tanks")
    shared.append_text(" and fins")
    with pytest.raises(weft.PermissionDenied):
        shared.set_text("all mine")
    assert (await held(store, "team")).permission is weft.Permission.READ_WRITE
    assert (await held(store, "team")).render() == "tanks and fins"


async def test_P12_without_a_share_there_is_nothing(store: weft.Store) -> None:
    await filled(store, "team", "tanks")
    await store.memory.share_block("iris", "team", "rose", weft.Permission.READ_ONLY)

    assert await store.memory.get_shared_block("lily", "iris", "team") is None
    assert await store.memory.get_shared_block("rose", "iris", "gone") is None
    assert await store.memory.get_shared_block("rose", "nobody", "team") is None
    assert await store.memory.list_shared_blocks("lily") == []
    assert await store.memory.unshare_block("iris", "team", "rose") is True
    assert await store.memory.unshare_block("iris", "team", "rose") is False
    assert await store.memory.get_shared_block("rose", "iris", "team") is None
    assert await store.memory.list_shared_blocks("rose") == []


async def test_P12_a_share_ends_with_its_block(store: weft.Store) -> None:
    await filled(store, "team", "tanks")
    await store.memory.share_block("iris", "team", "rose", weft.Permission.READ_ONLY)

    await store.memory.delete_block("iris", "team", is_system=True)
    await filled(store, "team", "secrets")

    assert await store.memory.get_shared_block("rose", "iris", "team") is None
    assert await store.memory.list_shared_blocks("rose") == []


# --- what a block is


async def test_P13_pin_type_and_schema_can_be_changed(store: weft.Store) -> None:
    await filled(store, "notes", "a\nb\nc")
    window = weft.TextSchema(viewport=weft.Viewport(start_line=2, display_lines=1))

    await store.memory.set_block_pinned("iris", "notes", True)
    await store.memory.set_block_type("iris", "notes", ARCHIVAL)
    await store.memory.update_block_schema("iris", "notes", window)

    (info,) = await store.memory.list_blocks_by_type("iris", ARCHIVAL)
    assert info.pinned is True
    assert (await held(store, "notes")).schema == window
    assert (await held(store, "notes")).render() == "[Showing lines 2-2 of 3]\nb"
    await store.memory.set_block_pinned("iris", "notes", False)
    assert (await store.memory.list_blocks("iris"))[0].pinned is False


async def test_P13_a_new_field_of_a_schema_can_be_written_and_the_old_values_stay(store: weft.Store) -> None:
    name, age = weft.FieldDef(name="name"), weft.FieldDef(name="age", type="number")
    await store.memory.create_block("iris", "person", schema=weft.MapSchema(fields=(name,)))
    (await held(store, "person")).set_field("name", "Ada")
    await store.memory.persist_block("iris", "person")

    await store.memory.update_block_schema("iris", "person", weft.MapSchema(fields=(name, age)))
    (await held(store, "person")).set_field("age", 36)

    assert (await held(store, "person")).render() == "name: Ada\nage: 36"


# --- the cache


async def test_P14_a_block_is_loaded_when_it_is_first_asked_for(tmp_path: Path) -> None:
    async with await weft.open(tmp_path / "w.db") as one:
        async with await weft.open(tmp_path / "w.db") as two:
            await two.memory.create_block("iris", "notes")
            await two.memory.update_block_text("iris", "notes", "written after the other was opened")

        assert await one.memory.get_rendered_content("iris", "notes") == "written after the other was opened"


async def test_P14_persisting_writes_only_what_changed_since(tmp_path: Path) -> None:
    async with await weft.open(tmp_path / "w.db") as one, await weft.open(tmp_path / "w.db") as two:
        await one.memory.create_block("iris", "notes")
        mine = await held(one, "notes")
        mine.append_text("mine ")
        await two.memory.append_to_block("iris", "notes", "theirs ")
        await one.memory.persist_block("iris", "notes")
        before = len(await one.memory.block_history("iris", "notes"))
        await one.memory.persist_block("iris", "notes")

        text = await two.memory.get_rendered_content("iris", "notes") or ""
        assert sorted(text.split()) == ["mine", "theirs"]
        assert len(await one.memory.block_history("iris", "notes")) == before


async def test_P14_blocks_that_leave_the_cache_keep_what_was_written_to_them(tmp_path: Path) -> None:
    kept = SqliteBackend(str(tmp_path / "weft.db"))
    memory = MemoryStore(kept.blocks, kept.archive, Finder(kept.search), cache_size=4)
    for number in range(20):
        await memory.create_block("iris", f"{number}")
        await memory.append_to_block("iris", f"{number}", f"text {number}")

    texts = [await memory.get_rendered_content("iris", f"{number}") for number in range(20)]

    assert texts == [f"text {number}" for number in range(20)]
    await kept.close()


@pytest.mark.parametrize("let_go", [False, True])
async def test_P14_P18_edits_not_yet_persisted_outlive_the_cache(tmp_path: Path, let_go: bool) -> None:
    kept = SqliteBackend(str(tmp_path / "weft.db"))
    memory = MemoryStore(kept.blocks, kept.archive, Finder(kept.search), cache_size=4)
    await memory.create_block("iris", "mine")
    document = await memory.get_block("iris", "mine")
    assert document is not None
    document.set_text("not yet persisted")
    if let_go:
        document = None
    for number in range(20):
        await memory.create_block("iris", f"{number}")
        await memory.append_to_block("iris", f"{number}", "x")

    await memory.persist_block("iris", "mine")
    await kept.close()

    async with await weft.open(tmp_path / "weft.db") as store:
        assert await store.memory.get_rendered_content("iris", "mine") == "not yet persisted"


async def test_P15_everything_lasts_in_one_file(tmp_path: Path) -> None:
    async with await weft.open(tmp_path / "weft.db") as store:
        await ocean(store)

    assert os.listdir(tmp_path) == ["weft.db"]


# --- types


async def test_P16_P43_core_is_always_shown_and_cannot_be_swapped_out(store: weft.Store) -> None:
    await filled(store, "persona", "I am Iris.", block_type=CORE)
    await store.memory.set_block_pinned("iris", "persona", False)

    assert '<block:persona permission="ReadWrite">\nI am Iris.\n</block:persona>' in await prompt(store)


async def test_P16_core_blocks_over_the_memory_tokens_are_an_error_that_names_the_largest(
    store: weft.Store,
) -> None:
    await filled(store, "small", "x" * 100, block_type=CORE)
    await filled(store, "large", "x" * 4000, block_type=CORE)
    limits = weft.ModelContextLimits(
        max_tokens=9000, memory_tokens=500, history_tokens=900, reserved_response_tokens=100
    )

    with pytest.raises(weft.BudgetExceeded, match="large"):
        await builder(store, weft.ContextConfig(default_limits=limits)).build("hi")


async def test_P16_P43_archival_and_log_blocks_are_found_on_demand_and_not_shown(store: weft.Store) -> None:
    await filled(store, "old", "marlin long ago", block_type=ARCHIVAL, pinned=True)
    await filled(store, "audit", "marlin was sold", block_type=LOG, pinned=True)

    assert await prompt(store) == "BASE"
    assert len(await store.memory.search("iris", "marlin")) == 2


async def test_P16_a_swapped_block_comes_back_with_its_text(store: weft.Store) -> None:
    await filled(store, "plan", "Dive at seven.", pinned=True)
    assert "Dive at seven." in await prompt(store)

    await store.memory.set_block_type("iris", "plan", ARCHIVAL)
    assert "Dive at seven." not in await prompt(store)
    await store.memory.set_block_type("iris", "plan", WORKING)
    assert "Dive at seven." in await prompt(store)


# --- permissions

APPENDS = {weft.Permission.APPEND, weft.Permission.READ_WRITE, weft.Permission.ADMIN}
OVERWRITES = {weft.Permission.READ_WRITE, weft.Permission.ADMIN}


@pytest.mark.parametrize("permission", list(weft.Permission))
async def test_P17_P19_the_store_obeys_the_permission_and_the_system_need_not(
    store: weft.Store, permission: weft.Permission
) -> None:
    await filled(store, "notes", "a", permission=permission)
    memory = store.memory
    tries: list[tuple[set[weft.Permission], Callable[[bool], Awaitable[Any]]]] = [
        (APPENDS, lambda system: memory.append_to_block("iris", "notes", "b", is_system=system)),
        (OVERWRITES, lambda system: memory.update_block_text("iris", "notes", "a", is_system=system)),
        (OVERWRITES, lambda system: memory.replace_in_block("iris", "notes", "a", "c", is_system=system)),
        ({weft.Permission.ADMIN}, lambda system: memory.delete_block("iris", "notes", is_system=system)),
    ]

    assert await memory.get_rendered_content("iris", "notes") == "a"
    for allowed, attempt in tries:
        if permission in allowed:
            await attempt(False)
            continue
        before = await memory.get_rendered_content("iris", "notes")
        with pytest.raises(weft.PermissionDenied):
            await attempt(False)
        assert await memory.get_rendered_content("iris", "notes") == before
        await attempt(True)
    assert await memory.get_block("iris", "notes") is None


async def test_P18_a_document_knows_its_schema_permission_label_and_who_holds_it(store: weft.Store) -> None:
    schema = weft.ListSchema(max_items=3)
    await store.memory.create_block("iris", "todo", schema=schema, permission=weft.Permission.APPEND)

    document = await held(store, "todo")

    assert (document.schema, document.permission) == (schema, weft.Permission.APPEND)
    assert (document.label, document.accessor) == ("todo", "iris")


async def test_P18_two_handles_are_on_one_document(store: weft.Store) -> None:
    await store.memory.create_block("iris", "notes")
    one, two = await held(store, "notes"), await held(store, "notes")

    one.set_text("seen by both")

    assert two.render() == "seen by both"


# --- working blocks and what they are for


async def test_P37_P43_pinned_working_blocks_load_and_others_only_when_referenced(store: weft.Store) -> None:
    await filled(store, "pinned", "always here", pinned=True)
    idle = await filled(store, "idle", "here when referenced")

    referenced = (await builder(store).with_batch_blocks([idle]).build("hi")).system_prompt

    assert "always here" in referenced
    assert "here when referenced" in referenced
    later = await prompt(store)
    assert "always here" in later
    assert "here when referenced" not in later
    pins = {info.label: info.pinned for info in await store.memory.list_blocks("iris")}
    assert pins == {"pinned": True, "idle": False}


async def test_P43_each_use_has_its_type_and_permission(store: weft.Store) -> None:
    log = weft.LogSchema(display_limit=5)
    await filled(store, "rules", "Be kind.", block_type=CORE, permission=weft.Permission.READ_ONLY)
    await store.memory.create_block(
        "iris", "audit", block_type=LOG, schema=log, permission=weft.Permission.APPEND
    )
    await store.memory.create_block("iris", "plan", pinned=True)

    with pytest.raises(weft.PermissionDenied):
        await store.memory.append_to_block("iris", "rules", "Or not.")
    (await held(store, "audit")).append_log_entry({"timestamp": "T1", "message": "started"})
    await store.memory.update_block_text("iris", "plan", "Dive.")

    assert "started" in (await held(store, "audit")).render()
    assert (await prompt(store)).index("Be kind.") < (await prompt(store)).index("Dive.")
