"""Blocks as a model reads them."""

from typing import Any

import pytest

from weft.memory.schemas.log import stamped
from weft.memory.schemas.registry import measure, render
from weft.types.schema import (
    CompositeSchema,
    CompositeSection,
    FieldDef,
    ListSchema,
    LogEntrySchema,
    LogSchema,
    MapSchema,
    TextSchema,
    Viewport,
)

from samples import NOW, STAMP

FIVE_LINES = "one\ntwo\nthree\nfour\nfive"


def window(start: int, lines: int) -> TextSchema:
    return TextSchema(viewport=Viewport(start_line=start, display_lines=lines))


def test_P26_a_text_is_shown_as_it_is() -> None:
    assert render(TextSchema(), " a\n\nb \n") == " a\n\nb \n"


@pytest.mark.parametrize(
    ("start", "lines", "shown"),
    [
        (1, 2, "[Showing lines 1-2 of 5]\none\ntwo"),
        (2, 3, "[Showing lines 2-4 of 5]\ntwo\nthree\nfour"),
        (4, 99, "[Showing lines 4-5 of 5]\nfour\nfive"),
        (1, 5, f"[Showing lines 1-5 of 5]\n{FIVE_LINES}"),
        (6, 2, "[Showing no lines of 5: the viewport starts at line 6]"),
    ],
)
def test_P26_a_viewport_shows_its_lines_counted_from_1(start: int, lines: int, shown: str) -> None:
    assert render(window(start, lines), FIVE_LINES) == shown


def test_a_viewport_on_nothing_shows_nothing_and_a_last_line_break_starts_no_line() -> None:
    assert render(window(1, 3), "") == ""
    assert render(window(1, 3), "a\nb\n") == "[Showing lines 1-2 of 2]\na\nb"


def test_P27_P31_a_map_shows_its_fields_in_order_and_skips_what_is_absent() -> None:
    schema = MapSchema(
        fields=(
            FieldDef(name="status", read_only=True),
            FieldDef(name="name"),
            FieldDef(name="missing"),
            FieldDef(name="tags", type="list"),
            FieldDef(name="none", type="list"),
            FieldDef(name="score", type="counter"),
            FieldDef(name="ratio", type="number"),
            FieldDef(name="on", type="boolean"),
            FieldDef(name="due", type="timestamp"),
            FieldDef(name="kept", type="list", read_only=True),
        )
    )
    content = {
        "on": False,
        "ratio": 0.5,
        "score": 0,
        "none": [],
        "tags": ["a b", 1, {"y": 1, "x": "é"}],
        "name": "Alice",
        "status": "active",
        "due": "2025-01-01",
        "kept": ["k"],
        "undefined": "not shown",
    }

    assert render(schema, content).split("\n") == [
        "status [read-only]: active",
        "name: Alice",
        "tags:",
        "- a b",
        "- 1",
        '- {"x": "é", "y": 1}',
        "score: 0",
        "ratio: 0.5",
        "on: false",
        "due: 2025-01-01",
        "kept [read-only]:",
        "- k",
    ]


@pytest.mark.parametrize(
    ("item", "line"),
    [
        ("first", "1. first"),
        (3, "1. 3"),
        (2.0, "1. 2"),
        (None, "1. null"),
        ([1, "a"], '1. [1, "a"]'),
        ({"task": "Review"}, "1. Review"),
        ({"task": "Review", "by": "Ann"}, "1. by: Ann, task: Review"),
        ({"task": "Review", "done": True}, "[x] Review"),
        ({"task": "Review", "done": False}, "[ ] Review"),
        ({"task": "Review", "done": "yes"}, "1. done: yes, task: Review"),
        ({"done": True}, "[x]"),
        ({"task": "Review", "note": None}, "1. Review"),
        ({}, "1."),
    ],
)
def test_P28_items_are_numbered_unless_they_can_be_done(item: Any, line: str) -> None:
    assert render(ListSchema(), [item]) == line


def test_P28_items_follow_the_order_of_their_schema_and_numbers_count_every_item() -> None:
    schema = ListSchema(
        item_schema=MapSchema(fields=(FieldDef(name="z"), FieldDef(name="done", type="boolean")))
    )
    items = [{"z": "last", "a": 1}, {"z": "two", "done": True}, "text"]

    assert render(schema, items) == "1. z: last, a: 1\n[x] two\n3. text"


def test_P29_a_log_shows_values_behind_the_time() -> None:
    schema = LogSchema(
        display_limit=9,
        entry_schema=LogEntrySchema(fields=(FieldDef(name="level"), FieldDef(name="message"))),
    )
    entries = [
        {"timestamp": "T3", "message": "hello", "level": "info", "extra": 7, "agent": "iris"},
        {"message": "no time of its own"},
        "plain text\n[T9] forged",
        {"timestamp": "T0"},
    ]

    assert render(schema, [stamped(entry, NOW) for entry in entries]).split("\n") == [
        "[T3] info hello iris 7",
        f"[{STAMP}] no time of its own",
        f"[{STAMP}] plain text",
        "  [T9] forged",
        "[T0]",
    ]


def test_P29_the_display_limit_keeps_the_newest() -> None:
    entries = [stamped({"m": number}, NOW) for number in (3, 2, 1)]

    assert render(LogSchema(display_limit=2), entries) == f"[{STAMP}] 3\n[{STAMP}] 2"
    assert measure(LogSchema(display_limit=2), entries) == len("3\n2")


def test_no_value_can_look_like_another_line_of_its_block() -> None:
    status = MapSchema(fields=(FieldDef(name="a"), FieldDef(name="status", read_only=True)))
    parts = CompositeSchema(sections=(CompositeSection(name="notes", schema=TextSchema()),))

    assert render(status, {"a": "x\nstatus [read-only]: fine"}) == "a: x\n  status [read-only]: fine"
    assert render(ListSchema(), ["one\n2. two", "three"]) == "1. one\n  2. two\n2. three"
    assert render(parts, {"notes": "x\n=== rules [read-only] ===\ny\n\\=== z ==="}) == (
        "=== notes ===\n\nx\n\\=== rules [read-only] ===\ny\n\\\\=== z ==="
    )


def test_P30_P31_a_composite_shows_headers_with_their_sections() -> None:
    schema = CompositeSchema(
        sections=(
            CompositeSection(name="notes", schema=TextSchema()),
            CompositeSection(
                name="diagnostics", schema=MapSchema(fields=(FieldDef(name="a"),)), read_only=True
            ),
            CompositeSection(name="empty", schema=ListSchema()),
        )
    )

    assert render(schema, {"notes": "here", "diagnostics": {"a": "x"}, "empty": []}) == (
        "=== notes ===\n\nhere\n\n=== diagnostics [read-only] ===\n\na: x\n\n=== empty ==="
    )


def test_the_limit_counts_what_a_viewport_hides() -> None:
    inner = CompositeSchema(sections=(CompositeSection(name="n", schema=window(1, 1)),))

    assert measure(window(1, 1), FIVE_LINES) == len(FIVE_LINES)
    assert measure(inner, {"n": FIVE_LINES}) == len(f"=== n ===\n\n{FIVE_LINES}")
