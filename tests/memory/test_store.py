"""The memory of agents: durable, shared under permissions, never overwritten by another writer."""

import asyncio
import gc
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import weft
from weft.memory.base import Store
from weft.memory.permission import ConsentRequest
from weft.memory.store import MemoryStore
from weft.recall.find import Finder
from weft.store.sqlite.backend import SqliteBackend
from weft.types.schema import ListSchema, TextSchema, Viewport
from weft.types.search import SearchContentType, SearchMode, SearchOptions

ROOT = Path(__file__).parent.parent.parent


async def test_a_block_lives_in_the_file(tmp_path: Path) -> None:
    async with await weft.open(tmp_path / "weft.db") as store:
        await store.memory.create_block("iris", "notes", description="What I know.", pinned=True)
        await store.memory.update_block_text("iris", "notes", "The boat is called Marlin.")
        await store.memory.append_to_block("iris", "notes", " It leaves from pier 4.")
        assert await store.memory.replace_in_block("iris", "notes", "pier 4", "pier 5") is True
        assert await store.memory.replace_in_block("iris", "notes", "pier 4", "pier 6") is False

    async with await weft.open(tmp_path / "weft.db") as store:
        document = await store.memory.get_block("iris", "notes")
        assert document is not None
        assert document.render() == "The boat is called Marlin. It leaves from pier 5."
        assert await store.memory.get_block("iris", "other") is None
        assert await store.memory.get_block("rose", "notes") is None
        (info,) = await store.memory.list_blocks("iris")
        assert (info.label, info.description, info.pinned) == ("notes", "What I know.", True)


async def test_edits_through_a_document_are_durable_once_they_are_persisted(tmp_path: Path) -> None:
    async with await weft.open(tmp_path / "weft.db") as store:
        await store.memory.create_block("iris", "todo", schema=ListSchema())
        document = await store.memory.get_block("iris", "todo")
        assert document is not None
        document.push_item({"task": "Pack", "done": False})
        document.commit()
        await store.memory.persist_block("iris", "todo")

    async with await weft.open(tmp_path / "weft.db") as store:
        text = await store.memory.get_rendered_content("iris", "todo")
        assert text is not None
        assert "Pack" in text


async def test_two_stores_on_one_file_see_each_others_edits(tmp_path: Path) -> None:
    async with await weft.open(tmp_path / "w.db") as one, await weft.open(tmp_path / "w.db") as two:
        await one.memory.create_block("iris", "notes")
        held = await two.memory.get_block("iris", "notes")
        assert held is not None

        await one.memory.append_to_block("iris", "notes", "one ")
        await two.memory.append_to_block("iris", "notes", "two ")

        seen = await one.memory.get_block("iris", "notes")
        assert seen is not None
        assert sorted(seen.render().split()) == ["one", "two"]
        assert held.render() == seen.render()


async def test_many_writers_lose_nothing(tmp_path: Path) -> None:
    async with await weft.open(tmp_path / "w.db") as one, await weft.open(tmp_path / "w.db") as two:
        await one.memory.create_block("iris", "notes")

        await asyncio.gather(
            *(
                store.memory.append_to_block("iris", "notes", f"{name}{number} ")
                for number in range(40)
                for name, store in (("x", one), ("y", two))
            )
        )

        text = await two.memory.get_rendered_content("iris", "notes") or ""
        assert sorted(text.split()) == sorted(f"{name}{n}" for n in range(40) for name in "xy")
        assert len(await one.memory.block_history("iris", "notes")) == 81


def test_several_programs_write_at_once_and_nothing_is_lost() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "two_writers.py")],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert "4 programs wrote 200 lines at the same time; 0 were lost." in done.stdout


async def test_undo_and_redo_survive_a_restart_and_keep_later_edits(tmp_path: Path) -> None:
    async with await weft.open(tmp_path / "weft.db") as store:
        await store.memory.create_block("iris", "notes")
        for word in ("one ", "two ", "three "):
            await store.memory.append_to_block("iris", "notes", word)

    async with await weft.open(tmp_path / "weft.db") as store:
        assert await store.memory.undo_block("iris", "notes") is True
        assert await store.memory.undo_block("iris", "notes") is True
        assert await store.memory.get_rendered_content("iris", "notes") == "one "
        assert await store.memory.redo_block("iris", "notes") is True
        assert await store.memory.get_rendered_content("iris", "notes") == "one two "
        await store.memory.append_to_block("iris", "notes", "four")
        assert await store.memory.redo_block("iris", "notes") is False
        assert [entry.kind for entry in await store.memory.block_history("iris", "notes")] == [
            *("edit", "edit", "edit", "edit", "undo", "undo", "redo", "edit"),
        ]


async def test_there_is_an_end_to_undoing(store: Store) -> None:
    await store.memory.create_block("iris", "notes")
    await store.memory.append_to_block("iris", "notes", "x")

    assert await store.memory.undo_block("iris", "notes") is True
    assert await store.memory.undo_block("iris", "notes") is False
    assert await store.memory.get_rendered_content("iris", "notes") == ""


async def test_every_version_can_be_read_again(store: Store) -> None:
    await store.memory.create_block("iris", "notes")
    await store.memory.update_block_text("iris", "notes", "first")
    await store.memory.update_block_text("iris", "notes", "second")

    _, first, second = await store.memory.block_history("iris", "notes")

    assert await store.memory.block_at("iris", "notes", first.version) == "first"
    assert await store.memory.block_at("iris", "notes", second.version) == "second"
    with pytest.raises(weft.StoreError, match="no version 999"):
        await store.memory.block_at("iris", "notes", 999)


async def test_permissions_bind_agents_and_not_the_system(store: Store) -> None:
    await store.memory.create_block("iris", "rules", permission=weft.Permission.READ_ONLY)
    await store.memory.create_block("iris", "diary", permission=weft.Permission.APPEND)

    for write in (store.memory.update_block_text, store.memory.append_to_block):
        with pytest.raises(weft.PermissionDenied):
            await write("iris", "rules", "mine now")
    with pytest.raises(weft.PermissionDenied):
        await store.memory.update_block_text("iris", "diary", "rewritten")
    await store.memory.append_to_block("iris", "diary", "a line")
    await store.memory.update_block_text("iris", "rules", "be kind", is_system=True)

    assert await store.memory.get_rendered_content("iris", "rules") == "be kind"
    assert await store.memory.get_rendered_content("iris", "diary") == "a line"
    with pytest.raises(weft.PermissionDenied):
        await store.memory.delete_block("iris", "diary")
    await store.memory.delete_block("iris", "diary", is_system=True)
    assert await store.memory.get_block("iris", "diary") is None


async def test_a_humans_block_is_written_only_when_somebody_agrees(tmp_path: Path) -> None:
    asked: list[ConsentRequest] = []

    class Once:
        async def ask(self, request: ConsentRequest) -> bool:
            asked.append(request)
            return len(asked) == 1

    kept = SqliteBackend(str(tmp_path / "weft.db"))
    memory = MemoryStore(kept.blocks, kept.archive, Finder(kept.search), consent=Once())
    await memory.create_block("iris", "will", permission=weft.Permission.HUMAN)

    await memory.append_to_block("iris", "will", "agreed")
    with pytest.raises(weft.PermissionDenied):
        await memory.append_to_block("iris", "will", " refused")

    assert await memory.get_rendered_content("iris", "will") == "agreed"
    assert [request.label for request in asked] == ["will", "will"]
    await kept.close()


async def test_a_share_has_its_own_permission_and_ends(store: Store) -> None:
    await store.memory.create_block("iris", "team", pinned=True)
    await store.memory.share_block("iris", "team", "rose", weft.Permission.APPEND)

    shared = await store.memory.get_shared_block("rose", "iris", "team")
    assert shared is not None
    shared.append_text("tanks")
    with pytest.raises(weft.PermissionDenied):
        shared.set_text("all mine")
    await store.memory.persist_block("iris", "team")

    assert await store.memory.get_rendered_content("iris", "team") == "tanks"
    assert [one.label for one in await store.memory.list_shared_blocks("rose")] == ["team"]
    assert await store.memory.get_shared_block("lily", "iris", "team") is None
    assert await store.memory.unshare_block("iris", "team", "rose") is True
    assert await store.memory.get_shared_block("rose", "iris", "team") is None


async def test_a_limit_refuses_growth_and_leaves_the_block_as_it_was(store: Store) -> None:
    await store.memory.create_block("iris", "notes", char_limit=10)
    await store.memory.append_to_block("iris", "notes", "12345")

    with pytest.raises(weft.StoreError, match="at most 10"):
        await store.memory.append_to_block("iris", "notes", "6789012")

    assert await store.memory.get_rendered_content("iris", "notes") == "12345"
    assert len(await store.memory.block_history("iris", "notes")) == 2


async def test_what_a_block_is_can_be_changed_but_not_its_kind(store: Store) -> None:
    await store.memory.create_block("iris", "notes")
    await store.memory.update_block_text("iris", "notes", "a\nb\nc")

    await store.memory.set_block_pinned("iris", "notes", True)
    await store.memory.set_block_type("iris", "notes", weft.BlockType.CORE)
    await store.memory.update_block_schema(
        "iris", "notes", TextSchema(viewport=Viewport(start_line=2, display_lines=1))
    )
    with pytest.raises(weft.StoreError, match="cannot become"):
        await store.memory.update_block_schema("iris", "notes", ListSchema())

    (info,) = await store.memory.list_blocks_by_type("iris", weft.BlockType.CORE)
    document = await store.memory.get_block("iris", "notes")
    assert document is not None
    assert info.pinned
    assert "b" in document.render()
    assert "[Showing lines 2-2 of 3]" in document.render()


async def test_one_search_covers_messages_blocks_and_the_archive(store: Store) -> None:
    session = await store.sessions.find_or_create("telegram", "c", "42", agent_id="iris")
    await store.messages.append(session.id, weft.Message(role="user", content="the marlin swims"))
    await store.memory.create_block("iris", "boat")
    await store.memory.update_block_text("iris", "boat", "Marlin is at pier 4")
    note = await store.memory.insert_archival("iris", "Marlin was built in 1998", {"by": "Clara"})

    found = await store.memory.search("iris", "marlin")
    only = await store.memory.search(
        "iris", "marlin", SearchOptions(content_types=(SearchContentType.BLOCKS,), limit=1)
    )
    (entry,) = await store.memory.search_archival("iris", "marlin", 5)

    assert {hit.source for hit in found} == set(SearchContentType)
    assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)
    assert only[0].content == "Marlin is at pier 4"
    assert (entry.id, entry.metadata) == (note, {"by": "Clara"})
    assert await store.memory.search("rose", "marlin") == []
    with pytest.raises(weft.PermissionDenied):
        await store.memory.search_all("marlin")
    assert len(await store.memory.search_all("marlin", operator=True)) == 3
    with pytest.raises(weft.StoreError, match="embedder"):
        await store.memory.search("iris", "marlin", SearchOptions(mode=SearchMode.VECTOR))


async def test_the_builder_takes_everything_from_an_open_store(store: Store) -> None:
    await store.memory.create_block("iris", "persona", block_type=weft.BlockType.CORE)
    await store.memory.update_block_text("iris", "persona", "I am Iris.")
    await store.facts.set("telegram:42", "name", "Ada")
    session = await store.sessions.find_or_create("telegram", "c", "42", agent_id="iris")
    await store.messages.append(session.id, weft.Message(role="user", content="Hello"))
    builder = weft.ContextBuilder(recipe="weft").with_store(store).for_agent("iris")

    context = await builder.for_sender("telegram", "42").with_session(session.id).build("Who am I?")

    assert '<block:persona permission="ReadWrite">\nI am Iris.\n</block:persona>' in context.system_prompt
    assert "- name: Ada" in context.system_prompt
    assert [message.content for message in context.history] == ["Hello"]


def _own_megabytes() -> float:
    """How much this process holds, Loro's documents included."""
    gc.collect()
    statm = Path("/proc/self/statm")
    if not statm.exists():
        pytest.skip("there is no /proc here to read the size of a process from")
    return int(statm.read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


async def test_memory_stays_flat_over_ten_thousand_blocks(tmp_path: Path) -> None:
    kept = SqliteBackend(str(tmp_path / "weft.db"))
    memory = MemoryStore(kept.blocks, kept.archive, Finder(kept.search), cache_size=8)

    async def use(numbers: range) -> None:
        for start in numbers[::500]:
            batch = [f"block {number}" for number in range(start, start + 500)]
            await asyncio.gather(*(memory.create_block("iris", label) for label in batch))
            await asyncio.gather(*(memory.append_to_block("iris", label, "x" * 2000) for label in batch))

    await use(range(2_000))
    before = _own_megabytes()
    await use(range(2_000, 10_000))
    grown = _own_megabytes() - before

    assert (len(memory._cache), len(memory._cache._alive)) == (8, 8)
    assert grown < 40, "8,000 documents take about 140 MB if they stay"
    assert len(await memory.list_blocks("iris")) == 10_000
    await kept.close()


async def test_a_long_chain_of_changes_is_folded_into_a_snapshot(
    store: Store, sql: Callable[..., Any]
) -> None:
    await store.memory.create_block("iris", "notes")
    for number in range(120):
        await store.memory.append_to_block("iris", "notes", f"{number} ")

    [(snapshot, seq)] = sql("select blob, seq from block_snapshots")
    [(later,)] = sql("select count(*) from block_updates where seq > ?", seq)

    assert snapshot
    assert later < 100
    assert len(await store.memory.block_history("iris", "notes")) == 121


@pytest.mark.parametrize("label", ["a/b", "it's", '"quoted"', "🐠", "<block:x>"])
async def test_any_label_works(store: Store, label: str) -> None:
    await store.memory.create_block("iris", label)
    await store.memory.append_to_block("iris", label, "x")

    assert await store.memory.get_rendered_content("iris", label) == "x"
    with pytest.raises(weft.StoreError, match="already"):
        await store.memory.create_block("iris", label)


async def test_an_address_of_a_server_is_refused_for_now() -> None:
    with pytest.raises(weft.StoreError, match="a file"):
        await weft.open("postgresql://localhost/weft")


async def test_a_new_schema_shows_in_the_context_at_once(store: Store) -> None:
    await store.memory.create_block("iris", "notes", pinned=True)
    await store.memory.update_block_text("iris", "notes", "a\nb\nc")

    schema = TextSchema(viewport=Viewport(start_line=2, display_lines=1))
    await store.memory.update_block_schema("iris", "notes", schema)

    assert await store.memory.get_rendered_content("iris", "notes") == "[Showing lines 2-2 of 3]\nb"


async def test_sharing_never_gives_more_than_the_owner_has(store: Store) -> None:
    await store.memory.create_block("iris", "rules", permission=weft.Permission.READ_ONLY)

    for other, permission in (("rose", weft.Permission.ADMIN), ("iris", weft.Permission.READ_ONLY)):
        with pytest.raises(weft.PermissionDenied, match="narrower"):
            await store.memory.share_block("iris", "rules", other, permission)
    await store.memory.share_block("iris", "rules", "rose", weft.Permission.READ_ONLY)
    await store.memory.share_block("iris", "rules", "lily", weft.Permission.ADMIN, is_system=True)

    assert [one.permission for one in await store.memory.list_shared_blocks("rose")] == ["ReadOnly"]
    assert [one.permission for one in await store.memory.list_shared_blocks("lily")] == ["Admin"]


async def test_a_refused_edit_leaves_the_handles_of_the_block_alive(store: Store) -> None:
    await store.memory.create_block("iris", "notes", char_limit=10)
    document = await store.memory.get_block("iris", "notes")
    assert document is not None

    with pytest.raises(weft.LimitExceeded):
        await store.memory.append_to_block("iris", "notes", "x" * 11)
    document.set_text("kept")
    await store.memory.persist_block("iris", "notes")

    assert await store.memory.get_rendered_content("iris", "notes") == "kept"


async def test_a_block_of_fifty_megabytes_is_refused_by_its_limit_or_works(
    store: Store, tmp_path: Path
) -> None:
    text = "The boat is called Marlin.\n" * 2_000_000
    await store.memory.create_block("iris", "small")
    await store.memory.create_block("iris", "large", char_limit=len(text) + 10)
    await store.memory.append_to_block("iris", "small", "kept")

    with pytest.raises(weft.LimitExceeded, match="at most 5000 characters"):
        await store.memory.update_block_text("iris", "small", text)
    await store.memory.update_block_text("iris", "large", text)
    await store.memory.append_to_block("iris", "large", "The end.")

    assert await store.memory.get_rendered_content("iris", "small") == "kept"
    assert await store.memory.get_rendered_content("iris", "large") == f"{text}The end."
    async with await weft.open(tmp_path / "weft.db") as again:
        assert await again.memory.get_rendered_content("iris", "large") == f"{text}The end."


async def test_a_schema_of_another_kind_is_refused_and_the_block_stays_as_it_was(store: Store) -> None:
    await store.memory.create_block("iris", "notes")
    await store.memory.append_to_block("iris", "notes", "kept")

    with pytest.raises(weft.StoreError, match="is a text and cannot become a list: make a new block"):
        await store.memory.update_block_schema("iris", "notes", ListSchema())

    document = await store.memory.get_block("iris", "notes")
    assert document is not None
    assert (document.schema, document.render()) == (TextSchema(), "kept")
