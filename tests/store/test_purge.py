"""Forgetting for good: the text is nowhere in the file, and everything else still is."""

from pathlib import Path

import pytest

import weft
from weft.types.schema import CompositeSchema, CompositeSection, ListSchema, LogSchema, MapSchema, TextSchema
from weft.types.secret import fingerprint
from weft.types.session import Fold

from samples import all_bytes, user

PASSAGE = 'hunter2-"quoted"-é🐠'
MARK = f"[purged:{fingerprint(PASSAGE)}]"
COVERED = "█" * len(PASSAGE)


def assert_gone(folder: Path) -> None:
    assert b"hunter2" not in all_bytes(folder)


async def fill(store: weft.Store) -> str:
    session = await store.sessions.new("a", "b", "c", agent_id="iris")
    call = weft.ToolCall(id="1", name="look", arguments={"with": [PASSAGE]})
    await store.messages.append(
        session.id,
        user(f"my password is {PASSAGE}, really"),
        weft.Message(role="assistant", content="", tool_calls=(call,), provider_data={"s": PASSAGE}),
        user("nothing here"),
    )
    await store.facts.set("a:c", "wifi", f"old {PASSAGE}")
    await store.facts.set("a:c", "wifi", "new")
    await store.summaries.add("a", "c", f"about {PASSAGE}")
    await store.tasks.add("a:c", f"change {PASSAGE}")
    await store.memory.insert_archival("iris", f"note {PASSAGE}", {"why": PASSAGE})
    receipt = (await weft.ContextBuilder().with_base_instructions("x").build(f"ask {PASSAGE}")).receipt
    assert receipt is not None
    await store.turns.finish(await store.turns.begin(session.id, ""), receipt)
    return session.id


async def test_a_text_is_overwritten_everywhere_and_a_mark_stays(tmp_path: Path) -> None:
    async with await weft.open(tmp_path / "w.db") as store:
        session = await fill(store)

        assert await store.purge(PASSAGE) >= 8

        first, call, last = await store.messages.all(session)
        assert (first.content, last.content) == (f"my password is {MARK}, really", "nothing here")
        assert call.tool_calls[0].arguments == {"with": [MARK]}
        assert [fact.value for fact in await store.facts.history("a:c", "wifi")] == [f"old {MARK}", "new"]
        assert [one.text for one in await store.summaries.recent("a", "c")] == [f"about {MARK}"]
        assert await store.memory.search("iris", "hunter2") == []
        assert {hit.content for hit in await store.memory.search("iris", "password note")} == {
            f"my password is {MARK}, really",
            f"note {MARK}",
        }
        assert await store.check() == []

    assert_gone(tmp_path)


async def test_a_block_keeps_its_history_without_the_text(tmp_path: Path) -> None:
    async with await weft.open(tmp_path / "w.db") as store, await weft.open(tmp_path / "w.db") as other:
        await store.memory.create_block("iris", "notes")
        await store.memory.append_to_block("iris", "notes", "start ")
        await store.memory.append_to_block("iris", "notes", f"<{PASSAGE}> ")
        await store.memory.append_to_block("iris", "notes", "end")
        document = await other.memory.get_block("iris", "notes")
        assert document is not None

        await store.purge(PASSAGE)

        assert await store.memory.get_rendered_content("iris", "notes") == f"start <{COVERED}> end"
        assert await other.memory.get_rendered_content("iris", "notes") == f"start <{COVERED}> end"
        assert document.render() == f"start <{COVERED}> end"
        versions = [entry.version for entry in await store.memory.block_history("iris", "notes")]
        assert await store.memory.block_at("iris", "notes", versions[2]) == f"start <{COVERED}> "
        await other.memory.append_to_block("iris", "notes", "!")
        assert await store.memory.undo_block("iris", "notes") is True
        assert await store.memory.undo_block("iris", "notes") is True
        assert await other.memory.get_rendered_content("iris", "notes") == f"start <{COVERED}> "
        assert await store.memory.search("iris", "hunter2") == []

    assert_gone(tmp_path)


async def test_every_kind_of_block_is_purged(tmp_path: Path) -> None:
    schema = CompositeSchema(
        sections=(
            CompositeSection(name="t", schema=TextSchema()),
            CompositeSection(name="m", schema=MapSchema(fields=(weft.FieldDef(name="key"),))),
            CompositeSection(name="l", schema=ListSchema()),
            CompositeSection(name="e", schema=LogSchema(display_limit=3)),
        )
    )
    async with await weft.open(tmp_path / "w.db") as store:
        await store.memory.create_block("iris", "all", schema=schema)
        document = await store.memory.get_block("iris", "all")
        assert document is not None
        document.set_text_in_section(PASSAGE, "t")
        document.set_field_in_section("key", PASSAGE, "m")
        document.push_item({"deep": [PASSAGE]}, section="l")
        document.append_log_entry({"timestamp": "T", "m": PASSAGE}, section="e")
        await store.memory.persist_block("iris", "all")

        await store.purge(PASSAGE)

        text = await store.memory.get_rendered_content("iris", "all") or ""
        assert text.count(COVERED) == 4
        assert PASSAGE not in text
    assert_gone(tmp_path)


async def test_a_text_in_pieces_is_purged_with_the_history_of_its_block(tmp_path: Path) -> None:
    async with await weft.open(tmp_path / "w.db") as store, await weft.open(tmp_path / "w.db") as other:
        await store.memory.create_block("iris", "notes")
        for number in ("hunter1111", "hunter2222", "none"):
            await store.memory.update_block_text("iris", "notes", f"token: {number}")
        document = await other.memory.get_block("iris", "notes")
        assert document is not None

        await store.purge("hunter2222")

        assert await other.memory.get_rendered_content("iris", "notes") == "token: none"
        await other.memory.append_to_block("iris", "notes", "!")
        assert await store.memory.get_rendered_content("iris", "notes") == "token: none!"
        assert document.render() == "token: none!"
        history = await store.memory.block_history("iris", "notes")
        assert [entry.author for entry in history] == ["system", "iris"]
        assert await store.memory.block_at("iris", "notes", history[0].version) == "token: none"
        assert await store.check() == []
    assert_gone(tmp_path)


async def test_a_writer_with_an_old_copy_of_the_block_does_not_bring_the_text_back(tmp_path: Path) -> None:
    async with await weft.open(tmp_path / "w.db") as store, await weft.open(tmp_path / "w.db") as other:
        await store.memory.create_block("iris", "notes")
        await store.memory.append_to_block("iris", "notes", f"{PASSAGE} ")
        document = await other.memory.get_block("iris", "notes")
        assert document is not None
        await store.memory.append_to_block("iris", "notes", "more ")
        document.append_text("mine")

        await store.purge(PASSAGE)
        await other.memory.persist_block("iris", "notes")
        await other.memory.rendered_blocks("iris")
        for _ in range(120):
            await other.memory.append_to_block("iris", "notes", ".")

        text = await store.memory.get_rendered_content("iris", "notes") or ""
        assert COVERED in text
        assert "more" in text
        assert "mine" in text
    assert_gone(tmp_path)


async def test_a_key_of_an_item_is_purged_and_an_empty_text_is_refused(tmp_path: Path) -> None:
    async with await weft.open(tmp_path / "w.db") as store:
        await store.memory.create_block("iris", "list", schema=ListSchema())
        document = await store.memory.get_block("iris", "list")
        assert document is not None
        document.push_item({PASSAGE: 1, "b": 2})
        await store.memory.persist_block("iris", "list")

        assert await store.purge(PASSAGE) == 1
        with pytest.raises(weft.StoreError, match="nothing to purge"):
            await store.purge(" ")
    assert_gone(tmp_path)


async def test_a_summary_that_was_made_from_the_text_is_dropped(tmp_path: Path) -> None:
    async with await weft.open(tmp_path / "w.db") as store:
        session = (await store.sessions.find_or_create("a", "b", "c")).id
        await store.messages.append(session, user("hello"), user("my pin\nis 1234"), user("more"))
        await store.messages.add_fold(session, Fold(last=1, text="A greeting."))
        await store.messages.add_fold(session, Fold(last=2, text="A greeting. The pin is 1234."))

        await store.purge("my pin\nis 1234")

        fold = await store.messages.fold(session)
        assert fold is not None
        assert (fold.last, fold.text) == (1, "A greeting.")
