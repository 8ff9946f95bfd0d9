"""The shapes of memory blocks, and their way through JSON."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from weft.errors import StoreError
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
    Viewport,
    schema_from_dict,
    schema_to_dict,
)
from weft.types.value import MAX_COUNT, plain, typed

TASK = MapSchema(
    fields=(
        FieldDef(name="title", required=True),
        FieldDef(name="done", type="boolean", default=False),
        FieldDef(name="tags", type="list", default=["a", 1], description="words", read_only=True),
    )
)
EVERY_SCHEMA: list[BlockSchema] = [
    TextSchema(),
    TextSchema(viewport=Viewport(start_line=3, display_lines=10)),
    MapSchema(),
    TASK,
    ListSchema(),
    ListSchema(item_schema=TASK, max_items=3),
    LogSchema(display_limit=5),
    LogSchema(display_limit=5, entry_schema=LogEntrySchema(fields=(FieldDef(name="message"),))),
    CompositeSchema(),
    CompositeSchema(
        sections=(
            CompositeSection(name="notes", schema=TextSchema(), description="free text"),
            CompositeSection(name="todo", schema=ListSchema(item_schema=TASK), read_only=True),
            CompositeSection(
                name="inner",
                schema=CompositeSchema(sections=(CompositeSection(name="x", schema=TASK),)),
            ),
        )
    ),
]


@pytest.mark.parametrize("schema", EVERY_SCHEMA)
def test_a_schema_survives_its_way_through_json(schema: BlockSchema) -> None:
    text = json.dumps(schema_to_dict(schema))

    assert schema_from_dict(json.loads(text)) == schema


def test_what_holds_its_default_is_not_written() -> None:
    assert schema_to_dict(TextSchema()) == {"kind": "text"}
    assert schema_to_dict(ListSchema(max_items=2)) == {"kind": "list", "max_items": 2}
    assert schema_to_dict(MapSchema(fields=(FieldDef(name="a"),))) == {
        "kind": "map",
        "fields": [{"name": "a"}],
    }


def test_the_kind_is_the_name_of_the_shape() -> None:
    kinds = {schema.kind for schema in EVERY_SCHEMA}

    assert kinds == {"text", "map", "list", "log", "composite"}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (None, "must be a table"),
        ([], "must be a table"),
        ({}, "kind None"),
        ({"kind": "txt"}, "did you mean 'text'?"),
        ({"kind": ["text"]}, "cannot be of the kind"),
        ({"kind": "text", "view": 1}, "unknown key 'view'"),
        ({"kind": "text", "viewport": {"start_line": 0, "display_lines": 1}}, "from 1 up"),
        ({"kind": "text", "viewport": {"start_line": 1}}, "lacks the key 'display_lines'"),
        ({"kind": "map", "fields": "a"}, "must be a list"),
        ({"kind": "map", "fields": [{"name": "a", "type": "string"}]}, "cannot be 'string'"),
        ({"kind": "map", "fields": [{"name": "a"}, {"name": "a"}]}, "'a' is defined twice"),
        ({"kind": "map", "fields": [{"name": ""}]}, "one line"),
        ({"kind": "list", "max_items": "3"}, "max_items must be a whole number, not text"),
        ({"kind": "list", "max_items": 0}, "from 1 up"),
        ({"kind": "list", "max_items": True}, "max_items must be a whole number, not true or false"),
        ({"kind": "list", "item_schema": {"kind": "lst"}}, "The schema.item_schema"),
        ({"kind": "list", "maxItems": 3}, "did you mean 'max_items'?"),
        ({"kind": "log"}, "lacks the key 'display_limit'"),
        ({"kind": "composite", "sections": {}}, "must be a list"),
        ({"kind": "composite", "sections": ["a"]}, "sections[0] must be a table"),
        ({"kind": "composite", "sections": [{"name": "a"}]}, "lacks the key 'schema'"),
        ({"kind": "composite", "sections": [{"name": "a", "schema": {"kind": "text"}, "x": 1}]}, "'x'"),
        (
            {"kind": "composite", "sections": [{"name": "a", "schema": {"kind": "text"}, "read_only": 1}]},
            "true or false",
        ),
        ({"kind": "composite", "sections": [{"name": "a", "schema": {"kind": "text"}}] * 2}, "defined twice"),
    ],
)
def test_invalid_data_is_refused_in_one_sentence(data: Any, words: str) -> None:
    with pytest.raises(StoreError, match=r"^[^\n]+[.?]$") as caught:
        schema_from_dict(data)

    assert words in str(caught.value)


def test_data_nested_without_end_is_refused() -> None:
    data: dict[str, Any] = {"kind": "list"}
    for _ in range(2000):
        data = {"kind": "list", "item_schema": data}

    with pytest.raises(StoreError, match="levels deep"):
        schema_from_dict(data)


def make_nothing_of(cls: Any, **values: Any) -> None:
    with pytest.raises(StoreError):
        cls(**values)


def test_schemas_that_make_no_sense_cannot_be_made() -> None:
    make_nothing_of(Viewport, start_line=0, display_lines=1)
    make_nothing_of(Viewport, start_line=1, display_lines=True)
    make_nothing_of(TextSchema, viewport=(1, 2))
    make_nothing_of(FieldDef, name="a\nb")
    make_nothing_of(FieldDef, name=" a")
    make_nothing_of(FieldDef, name=3)
    make_nothing_of(FieldDef, name="\ud800")
    make_nothing_of(FieldDef, name="a", type="string")
    make_nothing_of(FieldDef, name="a", type="number", default="1")
    make_nothing_of(MapSchema, fields=("a",))
    make_nothing_of(MapSchema, fields=(FieldDef(name="a"), FieldDef(name="a", type="list")))
    make_nothing_of(ListSchema, item_schema="text")
    make_nothing_of(ListSchema, max_items=0)
    make_nothing_of(LogSchema, display_limit=-1)
    make_nothing_of(LogSchema, display_limit=1, entry_schema=MapSchema())
    make_nothing_of(LogEntrySchema, fields=(FieldDef(name="a"), FieldDef(name="a")))
    make_nothing_of(CompositeSection, name="a", schema=None)
    same = CompositeSection(name="a", schema=TextSchema())
    make_nothing_of(CompositeSchema, sections=(same, same))


def test_lists_are_taken_for_tuples() -> None:
    fields: Any = [FieldDef(name="a")]

    assert MapSchema(fields=fields) == MapSchema(fields=(FieldDef(name="a"),))


def test_values_become_plain_json_data() -> None:
    at = datetime(2026, 11, 15, 20, 30, tzinfo=UTC)

    assert plain({"a": (1, [True, None]), "at": at}, "It") == {
        "a": [1, [True, None]],
        "at": "2026-11-15T20:30:00+00:00",
    }


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        float("inf"),
        2**63,
        -(2**63) - 1,
        "\ud800",
        {"\ud800": 1},
        {1: 2},
        b"x",
        {1, 2},
        object(),
    ],
)
def test_what_would_not_be_stored_as_it_is_is_refused(value: Any) -> None:
    with pytest.raises(StoreError):
        plain([value], "It")


def test_a_list_that_holds_itself_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)

    with pytest.raises(StoreError, match="levels deep"):
        plain(endless, "It")


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        ("text", ["", "a", "\x00"], [1, None, "\ud800", ["a"]]),
        ("number", [0, -1, 2.5], [True, "1", None, float("nan")]),
        ("boolean", [True, False], [0, "true", None]),
        ("list", [[], [1, "a", {"b": []}]], ["a", {}, None, [object()]]),
        ("timestamp", ["2025-01-01", "2025-01-01T00:00:00Z"], ["yesterday", 5, "", None]),
        ("counter", [0, -3, 1.5, MAX_COUNT], [True, "1", MAX_COUNT + 1, None]),
    ],
)
def test_a_field_takes_values_of_its_type_only(kind: Any, good: list[Any], bad: list[Any]) -> None:
    assert [typed(kind, value, "It") for value in good] == good
    for value in bad:
        with pytest.raises(StoreError):
            typed(kind, value, "It")


def test_a_timestamp_may_be_a_datetime() -> None:
    assert typed("timestamp", datetime(2025, 1, 1, tzinfo=UTC), "It") == "2025-01-01T00:00:00+00:00"
