"""Documents: the operations of each schema, within permissions and limits."""

from collections.abc import Callable
from typing import Any

import pytest

from weft.errors import LimitExceeded, PermissionDenied, StoreError
from weft.memory.document import BlockDoc, Document
from weft.memory.permission import Rights
from weft.types.memory import Permission
from weft.types.schema import (
    BlockSchema,
    CompositeSchema,
    CompositeSection,
    FieldDef,
    ListSchema,
    LogEntrySchema,
    LogSchema,
    MapSchema,
    TextSchema,
)

from samples import STAMP

PERSON = MapSchema(
    fields=(
        FieldDef(name="name", required=True),
        FieldDef(name="mood", default="calm"),
        FieldDef(name="age", type="number"),
        FieldDef(name="tags", type="list"),
        FieldDef(name="score", type="counter"),
        FieldDef(name="seen", type="timestamp"),
        FieldDef(name="status", read_only=True),
    )
)
PARTS = CompositeSchema(
    sections=(
        CompositeSection(name="notes", schema=TextSchema()),
        CompositeSection(name="stats", schema=PERSON),
        CompositeSection(name="todo", schema=ListSchema(max_items=1)),
        CompositeSection(name="events", schema=LogSchema(display_limit=2)),
        CompositeSection(name="diagnostics", schema=TextSchema(), read_only=True),
        CompositeSection(
            name="inner/most",
            schema=CompositeSchema(sections=(CompositeSection(name="notes", schema=TextSchema()),)),
        ),
    )
)


def document(
    schema: BlockSchema | None = None,
    *,
    permission: Permission = Permission.READ_WRITE,
    char_limit: int | None = 5000,
    consented: bool = False,
) -> Document:
    block = BlockDoc(schema=schema or TextSchema(), label="Notes", char_limit=char_limit)
    return Document(block, Rights(permission, consented))


def block_of(doc: Document) -> BlockDoc:
    return doc._block


def refused(error: type[Exception], words: str, call: Callable[..., Any], *args: Any, **more: Any) -> None:
    with pytest.raises(error) as caught:
        call(*args, **more)
    assert words in str(caught.value)


def test_text_can_be_set_appended_and_replaced_once() -> None:
    doc = document()

    doc.set_text("Hello, world! Hello!")
    doc.append_text(" More.")
    first, second = doc.replace_text("Hello", "Hi"), doc.replace_text("Goodbye", "Bye")

    assert doc.render() == "Hi, world! Hello! More."
    assert (first, second) == (True, False)


def test_text_positions_are_characters_whatever_their_size() -> None:
    doc = document()

    doc.set_text("é😀a\u0301 end")
    doc.replace_text("a\u0301", "👩‍👩‍👧")
    doc.append_text("\x00!")

    assert doc.render() == "é😀👩‍👩‍👧 end\x00!"


def test_a_large_text_is_replaced_at_once() -> None:
    doc = document(char_limit=None)

    doc.set_text("a" * 2_000_000)
    doc.set_text("b" * 1_000_000 + "a" * 1_000_000)

    assert doc.render() == "b" * 1_000_000 + "a" * 1_000_000


def test_fields_take_values_of_their_type() -> None:
    doc = document(PERSON)

    doc.set_text_field("name", "Ann")
    doc.set_field("age", 41.5)
    doc.append_to_list_field("tags", "one")
    doc.append_to_list_field("tags", {"two": 2})
    doc.set_field("seen", "2025-01-01T00:00:00Z")
    doc.set_field("status", "ok", is_system=True)

    assert doc.increment_counter("score", 5) == 5
    assert doc.increment_counter("score", -7) == -2
    assert doc.render() == (
        'name: Ann\nmood: calm\nage: 41.5\ntags:\n- one\n- {"two": 2}\nscore: -2\n'
        "seen: 2025-01-01T00:00:00Z\nstatus [read-only]: ok"
    )


def test_a_list_and_a_counter_can_be_set_too() -> None:
    doc = document(PERSON)
    doc.append_to_list_field("tags", 1)
    doc.increment_counter("score", 3)

    doc.set_field("tags", [True, "b"])
    doc.set_field("score", 10)

    assert doc.render() == "mood: calm\ntags:\n- true\n- b\nscore: 10"
    doc.set_field("tags", [])
    assert doc.render() == "mood: calm\nscore: 10"


def test_none_takes_a_value_away_and_the_default_comes_back() -> None:
    doc = document(PERSON)
    doc.set_field("mood", "sad")
    doc.set_field("age", 1)

    doc.set_field("mood", None)
    doc.set_field("age", None)

    assert doc.render() == "mood: calm"
    refused(StoreError, "is required", doc.set_field, "name", None)
    refused(StoreError, "set it to []", doc.set_field, "tags", None)
    refused(StoreError, "set it to 0", doc.set_field, "score", None)


def test_lists_and_counters_begin_at_their_default() -> None:
    schema = MapSchema(
        fields=(
            FieldDef(name="tags", type="list", default=["a"]),
            FieldDef(name="energy", type="counter", default=5),
        )
    )
    doc = document(schema)
    assert doc.render() == "tags:\n- a\nenergy: 5"

    doc.append_to_list_field("tags", "b")
    doc.increment_counter("energy", -5)
    assert doc.render() == "tags:\n- a\n- b\nenergy: 0"

    doc.set_field("tags", [])
    doc.set_field("energy", 7)
    doc.append_to_list_field("tags", "c")
    assert doc.render() == "tags:\n- c\nenergy: 7"


def test_items_can_be_pushed_inserted_and_deleted() -> None:
    doc = document(ListSchema())

    doc.push_item({"task": "Review"})
    doc.insert_item(0, {"task": "Urgent", "done": False})
    doc.push_item("third")
    doc.delete_item(1)

    assert doc.render() == "[ ] Urgent\n2. third"
    for index in (-1, 3, True, "0"):
        refused(StoreError, "give one from 0 to 2", doc.insert_item, index, "x")
    refused(StoreError, "give one from 0 to 1", doc.delete_item, 2)
    refused(StoreError, "it is empty", document(ListSchema()).delete_item, 0)


def test_items_have_the_shape_of_their_schema() -> None:
    task = MapSchema(
        fields=(
            FieldDef(name="title", required=True),
            FieldDef(name="done", type="boolean", default=False),
        )
    )
    doc = document(ListSchema(item_schema=task))

    doc.push_item({"title": "A"})
    doc.push_item({"title": "B", "done": True, "more": 1})

    assert doc.render() == "[ ] A\n[x] title: B, more: 1"
    refused(StoreError, "lacks the field 'title'", doc.push_item, {"done": True})
    refused(StoreError, "true or false", doc.push_item, {"title": "A", "done": 1})
    refused(StoreError, "An item of the block 'Notes' must be a table", doc.push_item, "A")
    refused(StoreError, "must be text", document(ListSchema(item_schema=TextSchema())).push_item, 1)
    nested = document(ListSchema(item_schema=ListSchema(item_schema=TextSchema(), max_items=1)))
    nested.push_item(["a"])
    refused(LimitExceeded, "at most 1 items", nested.push_item, ["a", "b"])
    refused(StoreError, "must be text", nested.push_item, [1])
    refused(StoreError, "must be a list", nested.push_item, "a")
    parts = document(ListSchema(item_schema=PARTS))
    parts.push_item({"notes": "x", "todo": [1], "events": [{"a": 1}, "b"]})
    refused(StoreError, "no section 'note'", parts.push_item, {"note": "x"})
    refused(StoreError, "table of sections", parts.push_item, 1)


def test_a_log_keeps_everything_and_shows_the_newest() -> None:
    schema = LogSchema(
        display_limit=2, entry_schema=LogEntrySchema(fields=(FieldDef(name="message", required=True),))
    )
    doc = document(schema)
    for n in range(4):
        doc.append_log_entry({"timestamp": f"T{n}", "message": f"m{n}", "extra": n})

    assert doc.render() == "[T3] m3 3\n[T2] m2 2"
    assert [entry["message"] for entry in doc.log_entries()] == ["m3", "m2"]
    assert [entry["message"] for entry in doc.log_entries(3)] == ["m3", "m2", "m1"]
    assert len(doc.log_entries(99)) == 4
    assert doc.log_entries(0) == []
    refused(StoreError, "lacks the field 'message'", doc.append_log_entry, {"text": "x"})
    refused(StoreError, "must be a table", doc.append_log_entry, "text")
    refused(StoreError, "whole number", doc.log_entries, -1)


def test_each_section_has_its_own_schema() -> None:
    doc = document(PARTS)

    doc.set_text_in_section("here", "notes")
    doc.append_text("!", section="notes")
    assert doc.replace_text("here", "there", section="notes")
    doc.set_field_in_section("age", 3, "stats")
    doc.increment_counter("score", section="stats")
    doc.push_item("a", section="todo")
    doc.append_log_entry({"m": 1}, section="events")
    doc.set_text_in_section("inside", ("inner/most", "notes"))
    doc.set_text_in_section("checked", "diagnostics", is_system=True)

    assert doc.render() == (
        "=== notes ===\n\nthere!\n\n=== stats ===\n\nmood: calm\nage: 3\nscore: 1\n\n=== todo ===\n\n1. a\n\n"
        f"=== events ===\n\n[{STAMP}] 1\n\n=== diagnostics [read-only] ===\n\nchecked\n\n"
        "=== inner/most ===\n\n=== notes ===\n\ninside"
    )
    assert doc.log_entries(section="events") == [{"m": 1}]


@pytest.mark.parametrize(
    ("schema", "call", "words"),
    [
        (
            TextSchema(),
            lambda doc: doc.set_field("a", 1),
            "is a text: use set_text, append_text or replace_text.",
        ),
        (
            TextSchema(),
            lambda doc: doc.set_text_in_section("a", "b"),
            "is a text without sections: use set_text",
        ),
        (PERSON, lambda doc: doc.set_text("a"), "is a map: use set_field, set_text_field"),
        (PERSON, lambda doc: doc.set_field("nam", "a"), "did you mean 'name'?"),
        (PERSON, lambda doc: doc.set_text_field("age", "a"), "is of the type number: use set_field."),
        (PERSON, lambda doc: doc.append_to_list_field("name", "a"), "is of the type text: use set_field."),
        (PERSON, lambda doc: doc.increment_counter("age", 1), "is of the type number: use set_field."),
        (PERSON, lambda doc: doc.set_text_field("score", "a"), "use increment_counter or set_field."),
        (
            PERSON,
            lambda doc: doc.set_field("age", "41"),
            "The field 'age' of the block 'Notes' must be a number",
        ),
        (PERSON, lambda doc: doc.set_field("seen", "now"), "must be a date and time"),
        (PERSON, lambda doc: doc.increment_counter("score", 2**53 + 1), "too large for a counter"),
        (
            ListSchema(),
            lambda doc: doc.append_log_entry({}),
            "is a list: use push_item, insert_item or delete_item.",
        ),
        (LogSchema(display_limit=1), lambda doc: doc.push_item(1), "is a log: use append_log_entry."),
        (LogSchema(display_limit=1), lambda doc: doc.delete_item(0), "is a log: use append_log_entry."),
        (
            PARTS,
            lambda doc: doc.set_text("a"),
            "is a composite: use set_text_in_section or set_field_in_section.",
        ),
        (PARTS, lambda doc: doc.set_text_in_section("a", "note"), "did you mean 'notes'?"),
        (
            PARTS,
            lambda doc: doc.set_text_in_section("a", "todo"),
            "use push_item, insert_item or delete_item with",
        ),
        (TextSchema(), lambda doc: doc.set_text("\ud800"), "lone surrogate"),
        (TextSchema(), lambda doc: doc.replace_text("", "a"), "give the words to look for"),
        (ListSchema(), lambda doc: doc.push_item(2**70), "too large a number"),
    ],
)
def test_a_wrong_operation_or_value_is_refused_and_says_what_is_right(
    schema: BlockSchema, call: Callable[[Document], Any], words: str
) -> None:
    doc = document(schema)
    before = block_of(doc).version()

    refused(StoreError, words, call, doc)
    refused(StoreError, words, call, document(schema, permission=Permission.ADMIN))
    assert block_of(doc).version() == before


APPENDS: list[tuple[BlockSchema, Callable[..., Any]]] = [
    (TextSchema(), lambda doc, **k: doc.append_text("a", **k)),
    (PERSON, lambda doc, **k: doc.append_to_list_field("tags", "a", **k)),
    (ListSchema(), lambda doc, **k: doc.push_item("a", **k)),
    (ListSchema(), lambda doc, **k: doc.insert_item(0, "a", **k)),
    (LogSchema(display_limit=1), lambda doc, **k: doc.append_log_entry({"a": 1}, **k)),
]
OVERWRITES: list[tuple[BlockSchema, Callable[..., Any]]] = [
    (TextSchema(), lambda doc, **k: doc.set_text("a", **k)),
    (TextSchema(), lambda doc, **k: doc.replace_text("a", "b", **k)),
    (PERSON, lambda doc, **k: doc.set_field("name", "a", **k)),
    (PERSON, lambda doc, **k: doc.set_text_field("name", "a", **k)),
    (PERSON, lambda doc, **k: doc.increment_counter("score", 1, **k)),
    (PARTS, lambda doc, **k: doc.set_text_in_section("a", "notes", **k)),
    (PARTS, lambda doc, **k: doc.set_field_in_section("age", 1, "stats", **k)),
]


@pytest.mark.parametrize("permission", Permission)
@pytest.mark.parametrize(("schema", "call"), APPENDS)
def test_who_may_append(permission: Permission, schema: BlockSchema, call: Callable[..., Any]) -> None:
    freely = permission in (Permission.APPEND, Permission.READ_WRITE, Permission.ADMIN)

    if freely:
        call(document(schema, permission=permission))
    else:
        refused(PermissionDenied, "'Notes'", call, document(schema, permission=permission))
    if freely or permission in (Permission.PARTNER, Permission.HUMAN):
        call(document(schema, permission=permission, consented=True))
    call(document(schema, permission=permission), is_system=True)


@pytest.mark.parametrize("permission", Permission)
@pytest.mark.parametrize(("schema", "call"), OVERWRITES)
def test_who_may_overwrite(permission: Permission, schema: BlockSchema, call: Callable[..., Any]) -> None:
    freely = permission in (Permission.READ_WRITE, Permission.ADMIN)

    if freely:
        call(document(schema, permission=permission))
    else:
        refused(PermissionDenied, "'Notes'", call, document(schema, permission=permission))
    if freely or permission in (Permission.PARTNER, Permission.HUMAN):
        call(document(schema, permission=permission, consented=True))
    call(document(schema, permission=permission), is_system=True)


def test_deleting_an_item_is_overwriting() -> None:
    doc = document(ListSchema(), permission=Permission.APPEND)
    doc.push_item("a")

    refused(PermissionDenied, "add to it instead", doc.delete_item, 0)
    doc.delete_item(0, is_system=True)

    assert doc.render() == ""


def test_read_only_fields_and_sections_are_the_systems_even_for_an_admin() -> None:
    person, parts = (
        document(PERSON, permission=Permission.ADMIN),
        document(PARTS, permission=Permission.ADMIN),
    )

    refused(PermissionDenied, "'status' of the block 'Notes' is read-only", person.set_field, "status", "x")
    refused(PermissionDenied, "section 'diagnostics'", parts.set_text_in_section, "x", "diagnostics")
    refused(PermissionDenied, "read-only", parts.append_text, "x", section="diagnostics")
    refused(PermissionDenied, "read-only", parts.set_field_in_section, "status", "x", "stats")


@pytest.mark.parametrize("is_system", [False, True])
def test_growth_past_the_limit_is_refused_and_changes_nothing(is_system: bool) -> None:
    text = document(char_limit=10)
    text.set_text("12345678")
    person = document(PERSON, char_limit=len("name: 12345\nmood: calm"))
    person.set_field("name", "12345")
    items = document(ListSchema(max_items=2), char_limit=len("1. a\n2. b"))
    items.push_item("a")
    log = document(LogSchema(display_limit=2), char_limit=5)
    log.append_log_entry("123")
    parts = document(PARTS, char_limit=len(document(PARTS).render()) + len("\n\nabc"))
    parts.set_text_in_section("abc", "notes")
    held = [block_of(doc).version() for doc in (text, person, items, log, parts)]

    refused(LimitExceeded, "at most 10 characters", text.append_text, "123", is_system)
    refused(LimitExceeded, "would make it 11", text.set_text, "1" * 11, is_system)
    refused(LimitExceeded, "would make it 11", text.replace_text, "1", "1234", is_system)
    refused(LimitExceeded, "22 characters", person.set_field, "name", "123456", is_system)
    refused(LimitExceeded, "22 characters", person.append_to_list_field, "tags", "1", is_system)
    refused(LimitExceeded, "22 characters", person.increment_counter, "score", 1, is_system)
    refused(LimitExceeded, "9 characters", items.push_item, "bc", is_system)
    refused(LimitExceeded, "5 characters", log.append_log_entry, "12", is_system)
    refused(LimitExceeded, "characters", parts.append_text, "d", is_system, section="notes")
    refused(LimitExceeded, "characters", parts.set_text_in_section, "abcd", "notes", is_system)
    refused(LimitExceeded, "characters", parts.push_item, "1", is_system, section="todo")
    assert [block_of(doc).version() for doc in (text, person, items, log, parts)] == held

    items.push_item("b")
    items.delete_item(0)
    items.insert_item(0, "c")
    refused(LimitExceeded, "at most 2 items and this would make it 3", items.push_item, "", is_system)
    log.append_log_entry("1")
    log.append_log_entry("2")  # the oldest is no longer shown, and no longer counts
    assert log.render() == f"[{STAMP}] 2\n[{STAMP}] 1"


def test_what_is_over_its_limit_may_shrink_but_not_grow() -> None:
    doc = document(char_limit=None)
    doc.set_text("0123456789")
    block_of(doc).char_limit = 5

    doc.set_text("01234567")
    assert doc.replace_text("7", "")
    refused(LimitExceeded, "at most 5", doc.append_text, "!")
    assert doc.replace_text("6", "x")

    assert doc.render() == "012345x"
