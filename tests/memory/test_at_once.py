"""Things that happen to a block at the same time, and what must be true afterwards."""

import asyncio
import gc
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import weft
from weft.compose import BackendStore
from weft.memory.base import Store
from weft.memory.store import MemoryStore
from weft.recall.find import Finder
from weft.store.sqlite.backend import SqliteBackend
from weft.types.schema import MapSchema, TextSchema, Viewport


async def test_a_handle_outlives_the_cache(tmp_path: Path) -> None:
    kept = SqliteBackend(str(tmp_path / "weft.db"))
    memory = MemoryStore(kept.blocks, kept.archive, Finder(kept.search), cache_size=1)
    for label in ("one", "two", "three"):
        await memory.create_block("iris", label)
    document = await memory.get_block("iris", "one")
    assert document is not None

    for label in ("two", "three"):
        await memory.append_to_block("iris", label, "x")
    gc.collect()
    document.append_text("kept")
    await memory.persist_block("iris", "one")

    assert await memory.get_rendered_content("iris", "one") == "kept"
    await kept.close()


async def test_an_edit_whose_caller_is_cancelled_is_whole_and_harms_no_handle(store: Store) -> None:
    await store.memory.create_block("iris", "notes")
    document = await store.memory.get_block("iris", "notes")
    assert document is not None

    task = asyncio.create_task(store.memory.append_to_block("iris", "notes", "cancelled "))
    while not task.done():
        await asyncio.sleep(0)
        task.cancel()
    await store.memory.append_to_block("iris", "notes", "next ")
    document.append_text("mine")
    await store.memory.persist_block("iris", "notes")

    text = await store.memory.get_rendered_content("iris", "notes") or ""
    assert text in ("cancelled next mine", "next mine")
    history = await store.memory.block_history("iris", "notes")
    assert len(history) == 1 + len(text.split())
    assert await store.memory.undo_block("iris", "notes") is True
    assert await store.memory.get_rendered_content("iris", "notes") == text.removesuffix("mine")


async def test_an_edit_that_could_not_be_written_is_not_shown_nor_written_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = SqliteBackend(str(tmp_path / "weft.db"))
    store, merge = BackendStore(backend), backend.blocks.merge
    await store.memory.create_block("iris", "notes")
    document = await store.memory.get_block("iris", "notes")
    assert document is not None

    async def full(block_id: str, since: int, work: Callable[..., Any]) -> int:
        def fails(moment: Any) -> None:
            work(moment)
            raise weft.StoreError("The disk is full.")

        return await merge(block_id, since, fails)

    monkeypatch.setattr(backend.blocks, "merge", full)
    with pytest.raises(weft.StoreError, match="full"):
        await store.memory.append_to_block("iris", "notes", "lost ")
    monkeypatch.undo()
    document.append_text("kept")
    await store.memory.persist_block("iris", "notes")

    assert await store.memory.get_rendered_content("iris", "notes") == "kept"
    await store.close()


async def test_an_edit_that_fails_midway_is_neither_shown_nor_stored(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = MapSchema(fields=(weft.FieldDef(name="mood"), weft.FieldDef(name="pets", type="list")))
    await store.memory.create_block("iris", "me", schema=schema)
    document = await store.memory.get_block("iris", "me")
    assert document is not None
    document.set_field("mood", "calm")
    document.append_to_list_field("pets", "cat")
    await store.memory.persist_block("iris", "me")
    text, history = document.render(), await store.memory.block_history("iris", "me")

    def fail(*_: object) -> None:
        raise RuntimeError("no memory")

    monkeypatch.setattr("weft.memory.blockdoc.set_fields", fail)  # an undo sets fields last
    with pytest.raises(weft.StoreError, match="could not be undone"):
        await store.memory.undo_block("iris", "me")
    monkeypatch.undo()
    await store.memory.persist_block("iris", "me")

    assert document.render() == await store.memory.get_rendered_content("iris", "me") == text
    assert await store.memory.block_history("iris", "me") == history
    assert await store.memory.undo_block("iris", "me") is True
    assert document.render() == ""


async def test_two_programs_that_undo_at_once_take_back_two_changes(tmp_path: Path) -> None:
    async with await weft.open(tmp_path / "w.db") as one, await weft.open(tmp_path / "w.db") as two:
        await one.memory.create_block("iris", "notes")
        for word in ("a ", "b ", "c "):
            await one.memory.append_to_block("iris", "notes", word)

        assert await asyncio.gather(*(s.memory.undo_block("iris", "notes") for s in (one, two))) == [True] * 2

        assert await one.memory.get_rendered_content("iris", "notes") == "a "


async def test_a_field_is_undone_as_often_as_it_was_set(store: Store) -> None:
    schema = MapSchema(fields=(weft.FieldDef(name="mood"),))
    await store.memory.create_block("iris", "me", schema=schema)
    document = await store.memory.get_block("iris", "me")
    assert document is not None
    for mood in ("calm", "glad", "wild"):
        document.set_field("mood", mood)
        await store.memory.persist_block("iris", "me")

    seen = []
    while await store.memory.undo_block("iris", "me"):
        seen.append(document.render())
    while await store.memory.redo_block("iris", "me"):
        seen.append(document.render())

    assert seen == ["mood: glad", "mood: calm", "", "mood: calm", "mood: glad", "mood: wild"]


async def test_what_a_block_is_changes_in_parts(tmp_path: Path) -> None:
    async with await weft.open(tmp_path / "w.db") as one, await weft.open(tmp_path / "w.db") as two:
        await one.memory.create_block("iris", "notes")

        await asyncio.gather(
            one.memory.set_block_pinned("iris", "notes", True),
            two.memory.set_block_limit("iris", "notes", 9000),
            one.memory.set_block_type("iris", "notes", weft.BlockType.ARCHIVAL),
        )

        (info,) = await two.memory.list_blocks("iris")
        assert (info.pinned, info.char_limit, info.block_type) == (True, 9000, weft.BlockType.ARCHIVAL)


async def test_a_schema_that_changes_while_a_text_is_kept_wins(tmp_path: Path) -> None:
    schema = TextSchema(viewport=Viewport(start_line=2, display_lines=1))
    async with await weft.open(tmp_path / "w.db") as one, await weft.open(tmp_path / "w.db") as two:
        for number in range(20):
            label = f"notes {number}"
            await one.memory.create_block("iris", label, pinned=True)
            await one.memory.update_block_text("iris", label, "a\nb")
            await asyncio.gather(
                one.memory.rendered_blocks("iris"), two.memory.update_block_schema("iris", label, schema)
            )

        shown = {block.content for block in await one.memory.rendered_blocks("iris")}
        assert shown == {"[Showing lines 2-2 of 2]\nb"}


async def test_subscribers_are_called_where_the_program_runs(store: Store) -> None:
    await store.memory.create_block("iris", "notes")
    document = await store.memory.get_block("iris", "notes")
    assert document is not None
    threads = []
    document.subscribe_root(lambda _: threads.append(threading.current_thread()))

    await store.memory.append_to_block("iris", "notes", "x")

    assert threads == [threading.main_thread()]
