"""Pattern's documents: the operations of each schema, when others hear of them, and how they read."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import weft
from weft.memory.document import Document
from weft.types.schema import BlockSchema

PERSON = weft.MapSchema(
    fields=(
        weft.FieldDef(name="status", read_only=True),
        weft.FieldDef(name="name"),
        weft.FieldDef(name="age", type="number"),
        weft.FieldDef(name="awake", type="boolean"),
        weft.FieldDef(name="tags", type="list"),
        weft.FieldDef(name="seen", type="timestamp"),
        weft.FieldDef(name="visits", type="counter"),
    )
)
PARTS = weft.CompositeSchema(
    sections=(
        weft.CompositeSection(name="notes", schema=weft.TextSchema()),
        weft.CompositeSection(name="person", schema=PERSON),
        weft.CompositeSection(name="diagnostics", schema=weft.TextSchema(), read_only=True),
    )
)
LOG = weft.LogSchema(
    display_limit=2, entry_schema=weft.LogEntrySchema(fields=(weft.FieldDef(name="message"),))
)


async def made(
    store: weft.Store,
    schema: BlockSchema,
    permission: weft.Permission = weft.Permission.READ_WRITE,
    label: str = "block",
) -> Document:
    await store.memory.create_block("iris", label, schema=schema, permission=permission)
    document = await store.memory.get_block("iris", label)
    assert document is not None
    return document


def logged(document: Document, *messages: str) -> None:
    for number, message in enumerate(messages):
        document.append_log_entry({"timestamp": f"2026-01-0{number + 1}T00:00:00Z", "message": message})


# --- text


async def test_P20_P26_text_is_set_appended_replaced_and_shown_as_it_is(store: weft.Store) -> None:
    document = await made(store, weft.TextSchema())

    document.set_text("Hello,  world\n")
    document.append_text("\tΩ 🐠 ")

    assert document.replace_text("world", "sea") is True
    assert document.replace_text("world", "sky") is False
    assert document.render() == "Hello,  sea\n\tΩ 🐠 "


async def test_P26_a_viewport_shows_its_lines_counted_from_one(store: weft.Store) -> None:
    schema = weft.TextSchema(viewport=weft.Viewport(start_line=2, display_lines=2))
    document = await made(store, schema)

    document.set_text("one\ntwo\nthree\nfour")

    shown = document.render()
    assert "[Showing lines 2-3 of 4]" in shown
    assert "two\nthree" in shown
    assert "one" not in shown.replace("[Showing lines 2-3 of 4]", "")
    assert "four" not in shown


async def test_P26_a_viewport_past_the_end_shows_only_what_there_is(store: weft.Store) -> None:
    schema = weft.TextSchema(viewport=weft.Viewport(start_line=3, display_lines=50))
    document = await made(store, schema)

    document.set_text("one\ntwo\nthree\nfour")

    assert "[Showing lines 3-4 of 4]" in document.render()
    assert "three\nfour" in document.render()


async def test_P20_a_viewport_hides_lines_from_view_and_not_from_edits(store: weft.Store) -> None:
    schema = weft.TextSchema(viewport=weft.Viewport(start_line=1, display_lines=1))
    document = await made(store, schema)
    document.set_text("one\ntwo\nthree")

    assert document.replace_text("three", "3") is True
    document.append_text("\nfour")

    assert "[Showing lines 1-1 of 4]" in document.render()


# --- maps


async def test_P21_P27_a_map_has_typed_entries_in_the_order_of_their_definition(store: weft.Store) -> None:
    document = await made(store, PERSON)

    document.increment_counter("visits", 2)
    document.increment_counter("visits", -5)
    document.set_field("seen", "2026-01-01T00:00:00Z")
    document.append_to_list_field("tags", "diver")
    document.append_to_list_field("tags", "sailor")
    document.set_field("age", 36)
    document.set_text_field("name", "Ada")

    assert document.render().split("\n") == [
        "name: Ada",
        "age: 36",
        "tags:",
        "- diver",
        "- sailor",
        "seen: 2026-01-01T00:00:00Z",
        "visits: -3",
    ]


@pytest.mark.parametrize(
    ("name", "value"),
    [("age", "many"), ("awake", "yes"), ("tags", "one"), ("visits", "two"), ("name", 3), ("seen", "soon")],
)
async def test_P21_a_value_of_another_type_is_refused(store: weft.Store, name: str, value: object) -> None:
    document = await made(store, PERSON)

    with pytest.raises(weft.StoreError):
        document.set_field(name, value)

    assert document.render() == ""


async def test_P21_an_operation_of_another_type_is_refused(store: weft.Store) -> None:
    document = await made(store, PERSON)

    with pytest.raises(weft.StoreError):
        document.increment_counter("name", 1)
    with pytest.raises(weft.StoreError):
        document.append_to_list_field("age", 1)
    with pytest.raises(weft.StoreError):
        document.set_text_field("visits", "one")
    with pytest.raises(weft.StoreError):
        document.set_field("unknown", 1)

    assert document.render() == ""


async def test_P21_a_field_has_its_default_until_it_is_set(store: weft.Store) -> None:
    schema = weft.MapSchema(fields=(weft.FieldDef(name="mood", default="calm"),))
    document = await made(store, schema)
    assert document.render() == "mood: calm"

    document.set_field("mood", "glad")

    assert document.render() == "mood: glad"


async def test_P21_counters_of_two_writers_add_up(tmp_path: Path) -> None:
    async with await weft.open(tmp_path / "w.db") as one, await weft.open(tmp_path / "w.db") as two:
        mine = await made(one, PERSON)
        theirs = await two.memory.get_block("iris", "block")
        assert theirs is not None

        mine.increment_counter("visits", 2)
        theirs.increment_counter("visits", 3)
        await one.memory.persist_block("iris", "block")
        await two.memory.persist_block("iris", "block")

        assert await one.memory.get_rendered_content("iris", "block") == "visits: 5"
        assert await two.memory.get_rendered_content("iris", "block") == "visits: 5"


async def test_P31_a_read_only_field_says_so_and_only_the_system_writes_it(store: weft.Store) -> None:
    document = await made(store, PERSON, weft.Permission.ADMIN)

    with pytest.raises(weft.PermissionDenied):
        document.set_field("status", "mine")
    document.set_field("status", "active", is_system=True)

    assert document.render() == "status [read-only]: active"


# --- lists


async def test_P22_P28_items_are_pushed_inserted_deleted_and_numbered(store: weft.Store) -> None:
    document = await made(store, weft.ListSchema())

    document.push_item("one")
    document.push_item("three")
    document.insert_item(1, "two")
    assert document.render() == "1. one\n2. two\n3. three"

    document.insert_item(3, "four")
    document.delete_item(0)
    assert document.render() == "1. two\n2. three\n3. four"


async def test_P28_items_that_can_be_done_have_a_checkbox(store: weft.Store) -> None:
    document = await made(store, weft.ListSchema())

    document.push_item({"task": "Pack", "done": True})
    document.push_item({"task": "Dive", "done": False})

    assert document.render() == "[x] Pack\n[ ] Dive"


async def test_P22_a_list_holds_no_more_than_its_max_items(store: weft.Store) -> None:
    document = await made(store, weft.ListSchema(max_items=2))
    document.push_item("one")
    document.push_item("two")

    with pytest.raises(weft.LimitExceeded):
        document.push_item("three")
    with pytest.raises(weft.LimitExceeded):
        document.insert_item(0, "zero")

    assert document.render() == "1. one\n2. two"
    document.delete_item(0)
    document.push_item("three")
    assert document.render() == "1. two\n2. three"


@pytest.mark.parametrize("index", [-1, 1, 99])
async def test_P22_an_index_outside_the_list_is_refused(store: weft.Store, index: int) -> None:
    document = await made(store, weft.ListSchema())
    document.push_item("one")

    with pytest.raises(weft.StoreError):
        document.delete_item(index)

    assert document.render() == "1. one"


async def test_P22_items_have_the_shape_of_their_schema(store: weft.Store) -> None:
    document = await made(store, weft.ListSchema(item_schema=weft.TextSchema()))

    document.push_item("text")
    with pytest.raises(weft.StoreError):
        document.push_item({"not": "text"})

    assert document.render() == "1. text"


# --- logs


async def test_P23_P29_a_log_shows_times_and_the_newest_first(store: weft.Store) -> None:
    document = await made(store, LOG)

    logged(document, "woke", "dived", "slept")

    assert document.render() == "[2026-01-03T00:00:00Z] slept\n[2026-01-02T00:00:00Z] dived"


async def test_P23_the_display_limit_bounds_what_is_shown_and_not_what_is_kept(store: weft.Store) -> None:
    document = await made(store, LOG)

    logged(document, "woke", "dived", "slept")

    assert {entry["message"] for entry in document.log_entries(None)} == {"dived", "slept"}
    assert {entry["message"] for entry in document.log_entries(10)} == {"woke", "dived", "slept"}
    assert [entry["message"] for entry in document.log_entries(1)] == ["slept"]


async def test_P23_every_entry_is_stored(tmp_path: Path) -> None:
    async with await weft.open(tmp_path / "weft.db") as store:
        logged(await made(store, LOG), "woke", "dived", "slept")
        await store.memory.persist_block("iris", "block")

    async with await weft.open(tmp_path / "weft.db") as store:
        document = await store.memory.get_block("iris", "block")
        assert document is not None
        assert len(document.log_entries(10)) == 3


async def test_P29_an_entry_shows_the_keys_its_schema_does_not_name_too(store: weft.Store) -> None:
    document = await made(store, LOG)

    document.append_log_entry({"timestamp": "2026-01-01T00:00:00Z", "message": "woke", "mood": "glad"})

    assert document.render().startswith("[2026-01-01T00:00:00Z] woke")
    assert "glad" in document.render()


# --- composites


async def test_P24_P30_P31_each_section_has_its_schema_and_its_header(store: weft.Store) -> None:
    document = await made(store, PARTS)

    document.set_text_in_section("Remember the tanks.", "notes")
    document.set_field_in_section("name", "Ada", "person")
    document.set_text_in_section("All well.", "diagnostics", is_system=True)

    assert document.render() == (
        "=== notes ===\n\nRemember the tanks.\n\n"
        "=== person ===\n\nname: Ada\n\n"
        "=== diagnostics [read-only] ===\n\nAll well."
    )


async def test_P24_a_section_takes_only_what_its_schema_allows(store: weft.Store) -> None:
    document = await made(store, PARTS)
    before = document.render()

    for section in ("person", "nowhere"):
        with pytest.raises(weft.StoreError):
            document.set_text_in_section("text", section)
    for field, value, section in (("name", "Ada", "notes"), ("age", "old", "person"), ("no", "x", "person")):
        with pytest.raises(weft.StoreError):
            document.set_field_in_section(field, value, section)

    assert document.render() == before


async def test_P31_only_the_system_writes_a_read_only_section_or_field(store: weft.Store) -> None:
    document = await made(store, PARTS, weft.Permission.ADMIN)

    with pytest.raises(weft.PermissionDenied):
        document.set_text_in_section("mine", "diagnostics")
    with pytest.raises(weft.PermissionDenied):
        document.set_field_in_section("status", "mine", "person")
    document.set_field_in_section("status", "active", "person", is_system=True)

    assert "=== diagnostics [read-only] ===" in document.render()
    assert "status [read-only]: active" in document.render()
    assert "mine" not in document.render()


async def test_P24_sections_last(tmp_path: Path) -> None:
    async with await weft.open(tmp_path / "weft.db") as store:
        document = await made(store, PARTS)
        document.set_text_in_section("Remember the tanks.", "notes")
        document.set_field_in_section("age", 36, "person")
        await store.memory.persist_block("iris", "block")
        shown = document.render()

    async with await weft.open(tmp_path / "weft.db") as store:
        assert await store.memory.get_rendered_content("iris", "block") == shown


# --- subscriptions


async def test_P25_events_come_on_commit_and_not_on_each_edit(store: weft.Store) -> None:
    document = await made(store, weft.TextSchema())
    heard: list[str] = []
    document.subscribe_root(lambda event: heard.append(event.triggered_by))

    document.set_text("one")
    document.append_text(" two")
    assert heard == []
    document.commit()

    assert heard == ["local"]


async def test_P25_a_commit_without_edits_is_silent(store: weft.Store) -> None:
    document = await made(store, weft.TextSchema())
    heard: list[str] = []
    document.subscribe_root(lambda event: heard.append(event.triggered_by))

    document.commit()
    document.set_text("one")
    document.commit()
    document.commit()

    assert heard == ["local"]


async def test_P25_edits_of_another_writer_arrive_as_imports(tmp_path: Path) -> None:
    async with await weft.open(tmp_path / "w.db") as one, await weft.open(tmp_path / "w.db") as two:
        document = await made(one, weft.TextSchema())
        heard: list[str] = []
        document.subscribe_root(lambda event: heard.append(event.triggered_by))

        await two.memory.append_to_block("iris", "block", "from afar")
        await one.memory.get_block("iris", "block")

        assert heard == ["import"]
        assert document.render() == "from afar"


async def test_P25_a_handle_hears_what_another_handle_commits(store: weft.Store) -> None:
    document = await made(store, weft.TextSchema())
    other = await store.memory.get_block("iris", "block")
    assert other is not None
    heard: list[str] = []
    document.subscribe_root(lambda event: heard.append(event.triggered_by))

    other.set_text("one")
    other.commit()

    assert heard == ["local"]


# --- operations of one schema on another, and permissions


@pytest.mark.parametrize(
    ("schema", "attempt"),
    [
        (weft.ListSchema(), lambda document: document.set_text("x")),
        (LOG, lambda document: document.set_text("x")),
        (PERSON, lambda document: document.push_item("x")),
        (weft.TextSchema(), lambda document: document.push_item("x")),
        (weft.TextSchema(), lambda document: document.set_field("name", "x")),
        (weft.ListSchema(), lambda document: document.append_log_entry({"message": "x"})),
        (weft.TextSchema(), lambda document: document.set_text_in_section("x", "notes")),
        (LOG, lambda document: document.delete_item(0)),
    ],
)
async def test_P20_P21_P22_P23_P24_an_operation_of_another_schema_is_refused(
    store: weft.Store, schema: BlockSchema, attempt: Callable[[Document], Any]
) -> None:
    document = await made(store, schema)

    with pytest.raises(weft.StoreError):
        attempt(document)

    assert document.render() == ""


OVERWRITING: list[tuple[BlockSchema, Callable[[Document, bool], Any]]] = [
    (weft.TextSchema(), lambda document, system: document.set_text("x", is_system=system)),
    (weft.TextSchema(), lambda document, system: document.replace_text("a", "b", is_system=system)),
    (PERSON, lambda document, system: document.set_field("name", "x", is_system=system)),
    (PERSON, lambda document, system: document.set_text_field("name", "x", is_system=system)),
    (PERSON, lambda document, system: document.increment_counter("visits", 1, is_system=system)),
    (PARTS, lambda document, system: document.set_text_in_section("x", "notes", is_system=system)),
    (PARTS, lambda document, system: document.set_field_in_section("name", "x", "person", is_system=system)),
]
APPENDING: list[tuple[BlockSchema, Callable[[Document, bool], Any]]] = [
    (weft.TextSchema(), lambda document, system: document.append_text("x", is_system=system)),
    (weft.ListSchema(), lambda document, system: document.push_item("x", is_system=system)),
    (weft.ListSchema(), lambda document, system: document.insert_item(0, "x", is_system=system)),
    (LOG, lambda document, system: document.append_log_entry({"message": "x"}, is_system=system)),
]


@pytest.mark.parametrize(("schema", "attempt"), OVERWRITING)
async def test_P20_P21_P24_overwriting_needs_more_than_append(
    store: weft.Store, schema: BlockSchema, attempt: Callable[[Document, bool], Any]
) -> None:
    for permission in weft.Permission:
        document = await made(store, schema, permission, str(permission))
        if permission in (weft.Permission.READ_WRITE, weft.Permission.ADMIN):
            attempt(document, False)
            continue
        before = document.render()
        with pytest.raises(weft.PermissionDenied):
            attempt(document, False)
        assert document.render() == before
        attempt(document, True)


@pytest.mark.parametrize(("schema", "attempt"), APPENDING)
async def test_P20_P22_P23_appending_is_allowed_from_append_on(
    store: weft.Store, schema: BlockSchema, attempt: Callable[[Document, bool], Any]
) -> None:
    for permission in weft.Permission:
        document = await made(store, schema, permission, str(permission))
        if permission in (weft.Permission.APPEND, weft.Permission.READ_WRITE, weft.Permission.ADMIN):
            attempt(document, False)
        else:
            with pytest.raises(weft.PermissionDenied):
                attempt(document, False)
            assert document.render() == ""
            attempt(document, True)
        assert "x" in document.render()


async def test_P22_deleting_an_item_is_overwriting(store: weft.Store) -> None:
    document = await made(store, weft.ListSchema(), weft.Permission.APPEND)
    document.push_item("one")

    with pytest.raises(weft.PermissionDenied):
        document.delete_item(0)

    document.delete_item(0, is_system=True)
    assert document.render() == ""
