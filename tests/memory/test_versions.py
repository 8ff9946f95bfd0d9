"""Reads give a version and writes take it as their base: what others wrote in between stays."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

import weft
from weft import Store
from weft.memory.document import Document


async def read(store: Store, label: str = "notes") -> Document:
    document = await store.memory.get_block("iris", label)
    assert document is not None
    return document


async def text_of(store: Store, label: str = "notes") -> str | None:
    return await store.memory.get_rendered_content("iris", label)


async def test_a_whole_text_with_its_base_is_a_change_of_what_was_read(tmp_path: Path) -> None:
    async with await weft.open(tmp_path / "w.db") as one, await weft.open(tmp_path / "w.db") as two:
        await one.memory.create_block("iris", "notes")
        await one.memory.update_block_text("iris", "notes", "milk\nbread\n")

        document = await read(two)
        new = f"eggs\n{document.render()}".replace("bread", "rye bread")
        await one.memory.append_to_block("iris", "notes", "tea\n")
        await two.memory.update_block_text("iris", "notes", new, base=document.version)

        assert await text_of(one) == "eggs\nmilk\nrye bread\ntea\n"
        kinds = [entry.kind for entry in await one.memory.block_history("iris", "notes")]
        assert kinds == ["edit"] * 4
        assert await one.memory.undo_block("iris", "notes") is True
        assert await text_of(two) == "milk\nbread\ntea\n"


async def test_a_whole_text_without_a_base_replaces_what_is_there_and_the_history_says_so(
    tmp_path: Path,
) -> None:
    async with await weft.open(tmp_path / "w.db") as one, await weft.open(tmp_path / "w.db") as two:
        await one.memory.create_block("iris", "notes")
        await one.memory.update_block_text("iris", "notes", "first")
        await read(one)
        await two.memory.update_block_text("iris", "notes", "second")
        await one.memory.update_block_text("iris", "notes", "third")

        assert await text_of(two) == "third"
        history = await one.memory.block_history("iris", "notes")
        assert [entry.kind for entry in history] == ["edit", "edit", "overwrite", "overwrite"]
        assert await two.memory.undo_block("iris", "notes") is True
        assert await text_of(one) == "second"
        assert await two.memory.redo_block("iris", "notes") is True
        assert await text_of(one) == "third"
        await one.memory.update_block_text("iris", "notes", "fourth")
        assert await one.memory.redo_block("iris", "notes") is False


async def test_what_has_happened_lately_says_that_a_block_was_overwritten(store: Store) -> None:
    await store.memory.create_block("iris", "notes")
    for text in ("first", "second"):
        await store.memory.update_block_text("iris", "notes", text)

    entries = await store.activity.recent("iris", since=datetime(2020, 1, 1, tzinfo=UTC), limit=5)

    assert [entry.text for entry in entries] == [
        "changed the block 'notes' 2 times",
        "overwrote the block 'notes'",
    ]


async def test_tasks_of_one_program_lose_nothing_either(store: Store) -> None:
    await store.memory.create_block("iris", "notes")
    all_have_read = asyncio.Barrier(5)

    async def add(word: str) -> None:
        document = await read(store)
        text, base = document.render(), document.version
        await all_have_read.wait()
        await store.memory.update_block_text("iris", "notes", f"{text}{word}\n", base=base)

    await asyncio.gather(*(add(f"task {number}") for number in range(5)))

    assert sorted((await text_of(store) or "").splitlines()) == [f"task {number}" for number in range(5)]


async def test_a_version_outlives_the_program(tmp_path: Path) -> None:
    async with await weft.open(tmp_path / "w.db") as store:
        await store.memory.create_block("iris", "notes")
        await store.memory.append_to_block("iris", "notes", "milk\n")
        base = (await read(store)).version
        await store.memory.append_to_block("iris", "notes", "tea\n")

    async with await weft.open(tmp_path / "w.db") as store:
        await store.memory.update_block_text("iris", "notes", "bread\nmilk\n", base=base)

        assert await text_of(store) == "bread\nmilk\ntea\n"


async def test_the_version_is_the_number_that_the_history_lists_and_a_number_will_do(store: Store) -> None:
    await store.memory.create_block("iris", "notes", pinned=True)
    await store.memory.append_to_block("iris", "notes", "milk\n")

    history = await store.memory.block_history("iris", "notes")
    (block,) = await store.memory.rendered_blocks("iris")
    assert (await read(store)).version == block.version == str(history[-1].version)
    await store.memory.append_to_block("iris", "notes", "tea\n")
    await store.memory.update_block_text("iris", "notes", "rye\nmilk\n", base=history[-1].version)

    assert await text_of(store) == "rye\nmilk\ntea\n"


@pytest.mark.parametrize(
    "base", ["999", 0, -1, "", "x", "1@", "1@zz", "1@00ff", "2@0186fca3d6c4c5fedfe70102"]
)
async def test_a_base_that_the_block_never_had_is_refused(store: Store, base: str | int) -> None:
    await store.memory.create_block("iris", "notes")
    await store.memory.append_to_block("iris", "notes", "kept")

    with pytest.raises(weft.StoreError, match=r"'notes' has no version .*: read it again, and use"):
        await store.memory.update_block_text("iris", "notes", "new", base=base)

    assert await text_of(store) == "kept"


async def test_the_version_of_another_block_is_refused(store: Store) -> None:
    for label in ("notes", "other"):
        await store.memory.create_block("iris", label)
        await store.memory.append_to_block("iris", label, label)
    saved = (await read(store, "other")).version
    document = await read(store, "other")
    document.append_text(" and more")
    document.render()

    for base in (saved, document.version):
        with pytest.raises(weft.StoreError, match="has no version"):
            await store.memory.update_block_text("iris", "notes", "new", base=base)


async def test_edits_that_are_not_saved_yet_are_part_of_what_is_read(store: Store) -> None:
    await store.memory.create_block("iris", "notes")
    writer, reader = await read(store), await read(store)
    writer.append_text("milk\n")

    text, base = reader.render(), reader.version
    await store.memory.append_to_block("iris", "notes", "tea\n")
    await store.memory.update_block_text("iris", "notes", f"bread\n{text}", base=base)

    assert (text, await text_of(store)) == ("milk\n", "bread\nmilk\ntea\n")


async def test_changes_that_were_made_beside_each_other_are_all_part_of_a_version(tmp_path: Path) -> None:
    async with await weft.open(tmp_path / "w.db") as one, await weft.open(tmp_path / "w.db") as two:
        await one.memory.create_block("iris", "notes")
        await one.memory.append_to_block("iris", "notes", "milk\n")
        mine, theirs = await read(one), await read(two)
        mine.append_text("tea\n")
        theirs.append_text("bread\n")
        await one.memory.persist_block("iris", "notes")
        await two.memory.persist_block("iris", "notes")

        document = await read(one)
        text, base = document.render(), document.version
        await two.memory.append_to_block("iris", "notes", "eggs\n")
        await one.memory.update_block_text("iris", "notes", f"{text}rye\n", base=base)

        lines = (await text_of(two) or "").splitlines()
        assert sorted(lines) == ["bread", "eggs", "milk", "rye", "tea"]
        assert base.isdecimal()


async def test_a_handle_that_lacks_changes_before_its_own_says_exactly_what_it_read(tmp_path: Path) -> None:
    async with await weft.open(tmp_path / "w.db") as one, await weft.open(tmp_path / "w.db") as two:
        await one.memory.create_block("iris", "notes")
        document = await read(one)
        await two.memory.append_to_block("iris", "notes", "theirs\n")
        document.append_text("mine\n")
        await one.memory.persist_block("iris", "notes")

        text, base = document.render(), document.version
        await one.memory.update_block_text("iris", "notes", f"{text}more\n", base=base)

        assert text == "mine\n"
        assert sorted((await text_of(two) or "").splitlines()) == ["mine", "more", "theirs"]


async def test_a_shared_block_says_what_was_read_too(store: Store) -> None:
    await store.memory.create_block("iris", "notes")
    await store.memory.share_block("iris", "notes", "rose", weft.Permission.READ_ONLY)

    shared = await store.memory.get_shared_block("rose", "iris", "notes")

    assert shared is not None
    assert shared.version == (await read(store)).version


async def test_after_a_purge_that_ended_the_history_an_old_base_is_refused(store: Store) -> None:
    await store.memory.create_block("iris", "notes")
    await store.memory.append_to_block("iris", "notes", "call 555-1299")
    await store.memory.replace_in_block("iris", "notes", "99", "34")
    base = (await read(store)).version
    await store.purge("555-1234")

    with pytest.raises(weft.StoreError, match="read it again"):
        await store.memory.update_block_text("iris", "notes", "call 555-1234", base=base)

    assert "555" not in (await text_of(store) or "")


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), min_size=1, max_size=12))
def test_whoever_writes_with_whatever_base_no_line_is_lost(steps: list[tuple[str, bool]]) -> None:
    """Three writers add lines to what they read last; each reads anew only now and then."""

    async def play() -> None:
        async with await weft.open(":memory:") as store:
            await store.memory.create_block("iris", "notes")
            seen = {name: ("", (await read(store)).version) for name in "abc"}
            for number, (name, reads) in enumerate(steps):
                if reads:
                    document = await read(store)
                    seen[name] = document.render(), document.version
                text, base = seen[name]
                await store.memory.update_block_text("iris", "notes", f"{text}{name}{number}\n", base=base)
            lines = (await text_of(store) or "").splitlines()
            assert sorted(lines) == sorted(f"{name}{number}" for number, (name, _) in enumerate(steps))

    asyncio.run(play())
