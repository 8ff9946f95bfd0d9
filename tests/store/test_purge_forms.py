"""A text is purged in every form: escaped, nested, in another order, shortened, as a number, in pieces."""

import json
from pathlib import Path

import pytest

import weft
from weft.types.redaction import Redaction
from weft.types.secret import fingerprint

from samples import all_bytes, user

TEXT = 'Zebra "quoted" \\ é🐠\nline two'
MARK = f"[purged:{fingerprint(TEXT)}]"


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("ascii_only", [True, False])
def test_json_inside_of_json_is_redacted_and_stays_json(depth: int, ascii_only: bool) -> None:
    value = TEXT
    for _ in range(depth):
        value = json.dumps({"b": 1, "a": [value]}, ensure_ascii=ascii_only)

    redacted = Redaction.of(TEXT).in_text(value)
    within_text = Redaction.of(TEXT).in_text(f"The tool said {value}, it seems.")

    assert "Zebra" not in redacted + within_text
    inner = redacted
    for _ in range(depth):
        inner = json.loads(inner)["a"][0]
    assert inner == MARK
    assert MARK in within_text


def test_a_table_is_redacted_in_whatever_order_its_keys_are() -> None:
    redaction = Redaction.of('{"pin": 4711, "name": "Ada"}')

    redacted = redaction.in_text('[{"arguments": {"name": "Ada", "pin": 4711}}, {"name": "Ada"}]')

    assert json.loads(redacted) == [{"arguments": {"purged": redaction.mark}}, {"name": "Ada"}]


def test_a_number_is_redacted_where_it_is_somebodys_and_not_where_it_is_ours() -> None:
    redaction = Redaction.of("4711")
    receipt = '{"items": [], "limit": 4711, "recipe": "weft", "counter": "exact"}'

    assert json.loads(redaction.in_text('{"pin": 4711, "other": 47110}')) == {
        "pin": redaction.mark,
        "other": 47110,
    }
    assert redaction.in_text(receipt) == receipt


def test_a_key_that_is_there_twice_hides_nothing() -> None:
    assert "4711x" not in Redaction.of("4711x").in_text('{"a": "4711x", "a": "b"}')


def test_text_that_does_not_hold_it_stays_byte_for_byte() -> None:
    for value in ('{ "a":1,  "b" : "\\u00e9" }', "plain \\ text", "", "[1, 2", '"Zebra'):
        assert Redaction.of(TEXT).in_text(value) == value


@pytest.mark.parametrize(
    ("title", "redacted"),
    [
        ("Zebra crossing at noon", "[purged]"),
        ("Zebra cross", "[purged]"),
        ("Zebra cross…", "[purged]"),
        ("He said: Zebra\ncrossing", "He said: [purged]"),
        ("He said: Zebr", "He said: [purged]"),
        ("He said: Ze", "He said: Ze"),
        ("Antelopes", "Antelopes"),
    ],
)
def test_a_shortened_title_is_redacted_too(title: str, redacted: str) -> None:
    assert Redaction("Zebra crossing at noon", "[purged]").in_excerpt(title) == redacted


async def test_titles_and_errors_that_begin_with_the_text_are_gone_from_the_file(tmp_path: Path) -> None:
    text = "Zebra crossing at noon, near the bank"
    async with await weft.open(tmp_path / "weft.db") as store:
        session = await store.sessions.new("a", "b", "c")
        await store.sessions.rename(session.id, "Zebra crossing at n")
        turn = await store.turns.begin(session.id, text)
        await store.turns.fail(turn, "The model refused 'Zebra crossing at noon,", user(text))

        await store.purge(text)

        [listed] = await store.sessions.list()
    assert listed.title == f"[purged:{fingerprint(text)}]"
    assert b"Zebra" not in all_bytes(tmp_path)


async def test_a_text_across_two_pieces_of_a_long_block_is_purged(tmp_path: Path) -> None:
    async with await weft.open(tmp_path / "weft.db") as store:
        await store.memory.create_block("iris", "long", char_limit=200_000)
        await store.memory.append_to_block("iris", "long", "x" * 32_730 + "hunter2-hunter2" + "y" * 40_000)

        await store.purge("hunter2-hunter2")

        text = await store.memory.get_rendered_content("iris", "long") or ""
    assert text.count("█") == len("hunter2-hunter2")
    assert b"hunter2" not in all_bytes(tmp_path)


async def test_names_of_fields_and_sections_and_numbers_of_blocks_are_purged(tmp_path: Path) -> None:
    fields = (weft.FieldDef(name="pin hunter2", type="number"), weft.FieldDef(name="city"))
    section = weft.CompositeSection(name="about hunter2", schema=weft.TextSchema())
    async with await weft.open(tmp_path / "weft.db") as store:
        await store.memory.create_block("iris", "map", schema=weft.MapSchema(fields=fields))
        document = await store.memory.get_block("iris", "map")
        assert document is not None
        document.set_field("pin hunter2", 4711)
        document.set_field("city", "Lisbon")
        await store.memory.persist_block("iris", "map")
        await store.memory.create_block("iris", "parts", schema=weft.CompositeSchema(sections=(section,)))
        document = await store.memory.get_block("iris", "parts")
        assert document is not None
        document.set_text_in_section("It rains.", "about hunter2")
        await store.memory.persist_block("iris", "parts")

        await store.purge("hunter2")
        await store.purge("4711")

        fields_now = await store.memory.get_rendered_content("iris", "map") or ""
        parts_now = await store.memory.get_rendered_content("iris", "parts") or ""
    assert f"pin [purged:{fingerprint('hunter2')}]" in fields_now
    assert "████" in fields_now
    assert "Lisbon" in fields_now
    assert "It rains." in parts_now
    assert b"hunter2" not in all_bytes(tmp_path)


async def test_a_text_that_a_block_only_shows_is_not_passed_over(tmp_path: Path) -> None:
    schema = weft.MapSchema(fields=(weft.FieldDef(name="pin"),))
    async with await weft.open(tmp_path / "weft.db") as store:
        await store.memory.create_block("iris", "map", schema=schema)
        document = await store.memory.get_block("iris", "map")
        assert document is not None
        document.set_field("pin", "secret9")
        await store.memory.persist_block("iris", "map")

        with pytest.raises(weft.StoreError, match="cannot be taken out of 'map': delete that block"):
            await store.purge("pin: secret9")
