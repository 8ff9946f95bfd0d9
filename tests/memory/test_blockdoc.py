"""The document behind a block: who is told, what is saved, what was, and what is undone."""

import logging
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import Any

import pytest

from weft.errors import LimitExceeded, StoreError
from weft.memory.blockdoc import NO_VERSION
from weft.memory.document import BlockDoc, Document
from weft.memory.events import BlockChanged
from weft.memory.permission import Rights
from weft.types.memory import Permission
from weft.types.schema import BlockSchema, FieldDef, MapSchema, TextSchema

PERSON = MapSchema(
    fields=(
        FieldDef(name="name"),
        FieldDef(name="mood", default="calm"),
        FieldDef(name="age", type="number"),
        FieldDef(name="tags", type="list"),
        FieldDef(name="score", type="counter"),
    )
)


def document(schema: BlockSchema | None = None) -> Document:
    return Document(BlockDoc(schema=schema or TextSchema(), label="Notes"))


def block_of(doc: Document) -> BlockDoc:
    return doc._block


def refused(error: type[Exception], words: str, call: Callable[..., Any], *args: Any) -> None:
    with pytest.raises(error) as caught:
        call(*args)
    assert words in str(caught.value)


def test_P25_subscribers_hear_of_a_commit_and_not_of_each_edit() -> None:
    doc, heard = document(), list[BlockChanged]()
    subscription = doc.subscribe_root(heard.append)

    doc.append_text("a")
    doc.append_text("b")
    doc.render()
    assert heard == []
    doc.commit()
    doc.commit()
    assert [change.triggered_by for change in heard] == ["local"]

    subscription.unsubscribe()
    subscription.unsubscribe()
    doc.append_text("c")
    doc.commit()
    assert len(heard) == 1


def test_subscribers_hear_of_what_others_wrote() -> None:
    doc, other, heard = document(), document(), list[str]()
    doc.subscribe_root(lambda change: heard.append(change.triggered_by))
    other.set_text("theirs")

    block_of(doc).import_updates([block_of(other).snapshot()])
    block_of(doc).import_updates([block_of(other).snapshot()])

    assert heard == ["import"]


def test_a_subscriber_that_fails_is_logged_and_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    doc, heard = document(), list[str]()

    def fail(change: BlockChanged) -> None:
        raise ValueError("not today")

    doc.subscribe_root(fail)
    doc.subscribe_root(lambda change: heard.append(doc.render()))
    doc.append_text("a")
    with caplog.at_level(logging.WARNING):
        doc.commit()

    assert heard == ["a"]
    assert "not today" in caplog.text
    doc.append_text("b")
    assert doc.render() == "ab"


def test_a_subscriber_may_write_and_an_interrupt_is_not_swallowed() -> None:
    doc, other = document(), document()
    subscription = doc.subscribe_root(lambda change: doc.append_text("!"))
    doc.append_text("a")
    doc.commit()
    subscription.unsubscribe()
    assert doc.render() == "a!"

    def interrupt(change: BlockChanged) -> None:
        raise KeyboardInterrupt

    other.subscribe_root(interrupt)
    other.append_text("a")
    with pytest.raises(KeyboardInterrupt):
        other.commit()
    assert other.render() == "a"


def test_all_handles_of_a_block_see_one_document() -> None:
    block = BlockDoc(schema=TextSchema(), label="Notes")
    writer = Document(block, accessor="iris")
    reader = Document(block, Rights(Permission.READ_ONLY), accessor="otto")

    writer.set_text("seen at once")

    assert reader.render() == "seen at once"
    assert (reader.accessor, reader.permission, reader.label, reader.schema) == (
        "otto",
        Permission.READ_ONLY,
        "Notes",
        TextSchema(),
    )


def test_a_document_is_its_snapshot_and_the_updates_since() -> None:
    doc = document()
    doc.set_text("one")
    snapshot, version = block_of(doc).snapshot(), block_of(doc).version()
    doc.append_text(" two")
    update = block_of(doc).export_since(version)

    loaded = BlockDoc.load(schema=TextSchema(), label="Notes", updates=[update, snapshot, update])

    assert Document(loaded).render() == "one two"
    assert loaded.version() == block_of(doc).version()
    everything = block_of(doc).export_since(NO_VERSION)
    assert BlockDoc.load(schema=TextSchema(), label="Notes", updates=[everything]).text() == "one two"
    assert BlockDoc.load(schema=TextSchema(), label="Notes", updates=[]).text() == ""


def test_an_update_waits_for_the_one_before_it() -> None:
    doc = document()
    doc.set_text("one")
    first, version = block_of(doc).snapshot(), block_of(doc).version()
    doc.append_text(" two")
    second = block_of(doc).export_since(version)
    other = BlockDoc(schema=TextSchema(), label="Notes")

    assert other.import_updates([second]) is False
    assert other.text() == ""
    assert other.import_updates([first]) is True
    assert other.text() == "one two"
    with pytest.raises(StoreError, match="lacks some of its history"):
        BlockDoc.load(schema=TextSchema(), label="Notes", updates=[second])


def test_what_loro_raises_becomes_a_store_error_and_changes_nothing() -> None:
    doc = document()
    doc.set_text("kept")
    other = document()
    other.set_text("other")
    good, elsewhere = block_of(other).snapshot(), block_of(other).frontiers()

    for broken in (b"", b"nonsense", good[:-3]):
        refused(
            StoreError, "The block 'Notes' could not be merged", block_of(doc).import_updates, [good, broken]
        )
    refused(StoreError, "exported", block_of(doc).export_since, b"\xff\xff")
    refused(StoreError, "earlier version", block_of(doc).at, elsewhere)
    refused(StoreError, "undone", block_of(doc).reverse, b"zzzz", b"zzzz")
    refused(StoreError, "written", block_of(doc).splice_text, 99, 1, "x")

    assert doc.render() == "kept"


def test_the_peer_of_a_process_can_be_given() -> None:
    block = BlockDoc(schema=TextSchema(), label="Notes", peer=7)
    Document(block).set_text("a")

    assert block._doc.peer_id == 7


def test_a_document_can_be_seen_as_it_was() -> None:
    doc = document()
    empty = block_of(doc).frontiers()
    doc.set_text("then")
    then = block_of(doc).frontiers()
    doc.set_text("now")

    past = Document(block_of(doc).at(then))
    past.append_text(" changed")

    assert past.render() == "then changed"
    assert doc.render() == "now"
    assert block_of(doc).at(empty).text() == ""


def edit(doc: Document, change: Callable[[], Any]) -> tuple[bytes, bytes]:
    before = block_of(doc).frontiers()
    change()
    return before, block_of(doc).frontiers()


def undo(doc: Document, span: tuple[bytes, bytes]) -> tuple[bytes, bytes]:
    return edit(doc, lambda: block_of(doc).reverse(*span))


def test_undo_takes_back_one_edit_and_keeps_later_ones() -> None:
    doc = document()
    doc.set_text("EARLIER one two")
    bad = edit(doc, lambda: doc.replace_text("one", "one BAD"))
    doc.append_text(" LATER")

    undone = undo(doc, bad)
    assert doc.render() == "EARLIER one two LATER"

    doc.append_text("!")
    undo(doc, undone)
    assert doc.render() == "EARLIER one BAD two LATER!"


def test_undo_works_on_a_document_that_was_loaded_again() -> None:
    doc = document(PERSON)
    first = edit(doc, lambda: doc.set_field("name", "Ann"))
    second = edit(doc, lambda: doc.increment_counter("score", 4))
    loaded = Document(BlockDoc.load(schema=PERSON, label="Notes", updates=[block_of(doc).snapshot()]))

    undo(loaded, first)
    assert loaded.render() == "mood: calm\nscore: 4"
    undo(loaded, second)
    assert loaded.render() == "mood: calm"


def test_undo_of_nothing_is_nothing() -> None:
    doc = document()
    doc.set_text("same")

    assert block_of(doc).reverse(*edit(doc, lambda: doc.set_text("same"))) is False


@pytest.mark.parametrize("round_", range(8))
def test_undo_never_wins_over_a_value_that_was_set_later(round_: int) -> None:
    """The inverse is written in the past; without care it beats the later value by chance of its number."""
    doc = document(PERSON)

    def both() -> None:
        doc.set_field("name", "Ann")
        doc.set_field("age", 1)
        doc.set_field("mood", "glad")

    span = edit(doc, both)
    doc.set_field("mood", "sad")

    undo(doc, span)

    assert doc.render() == "mood: sad"


def test_undo_of_the_first_step_of_a_counter_and_a_list_keeps_the_next() -> None:
    doc = document(PERSON)
    count = edit(doc, lambda: doc.increment_counter("score", 5))
    tag = edit(doc, lambda: doc.append_to_list_field("tags", "a"))
    doc.increment_counter("score", 2)
    doc.append_to_list_field("tags", "b")

    undo(doc, count)
    undo(doc, tag)

    assert doc.render() == "mood: calm\ntags:\n- b\nscore: 2"


def test_another_schema_hides_content_and_loses_none() -> None:
    doc = document(MapSchema(fields=(FieldDef(name="a", type="list"), FieldDef(name="b", type="number"))))
    doc.append_to_list_field("a", "x")
    doc.set_field("b", 3)
    first = doc.schema

    block_of(doc).schema = MapSchema(fields=(FieldDef(name="b"), FieldDef(name="a")))
    assert doc.render() == "b: 3"
    block_of(doc).schema = TextSchema()
    assert doc.render() == ""
    block_of(doc).schema = first
    assert doc.render() == "a:\n- x\nb: 3"


def test_equal_edits_are_an_equal_version_in_whatever_order_they_came() -> None:
    updates = []
    for peer in (5, 300, 2**63 + 1, 7, 2**40):
        block = BlockDoc(schema=TextSchema(), label="Notes", peer=peer)
        Document(block).set_text("x")
        updates.append(block.snapshot())
    turned = [updates[at:] + updates[:at] for at in range(5)]

    loaded = [BlockDoc.load(schema=TextSchema(), label="Notes", updates=order) for order in turned]

    assert len({block.version() for block in loaded}) == 1
    assert len({block.frontiers() for block in loaded}) == 1


def test_threads_do_not_come_between_a_check_and_its_write() -> None:
    block = BlockDoc(schema=TextSchema(), label="Notes", char_limit=50)

    def write() -> None:
        for _ in range(100):
            with suppress(LimitExceeded):
                Document(block).append_text("x")

    threads = [Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert block.text() == "x" * 50
