"""A receipt as a picture that any browser can show."""

from xml.etree import ElementTree as ET

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

import weft
from weft.web.receipt import receipt_svg

SVG = "{http://www.w3.org/2000/svg}"


def item(
    layer: str, tokens: int, *, title: str = "", kept: bool = True, reason: str = ""
) -> weft.ReceiptItem:
    return weft.ReceiptItem(layer=layer, source=layer, title=title, tokens=tokens, kept=kept, reason=reason)


def drawn(*items: weft.ReceiptItem, limit: int = 1000, recipe: str = "weft") -> ET.Element:
    svg = receipt_svg(weft.Receipt(items=items, limit=limit, recipe=recipe))
    return ET.fromstring(svg.encode("utf-8"))  # noqa: S314 - our own text


def lines(svg: ET.Element) -> list[str]:
    return [text.text or "" for text in svg.iter(f"{SVG}text")]


def test_the_picture_says_how_much_of_the_limit_is_used() -> None:
    svg = drawn(item("history", 1250), item("message", 250), limit=2000)

    assert lines(svg)[0] == "receipt: 1,500 of 2,000 tokens (75%), recipe weft"
    assert svg.get("aria-label") == "1,500 of 2,000 tokens (75%), recipe weft"


def test_each_layer_is_a_bar_as_long_as_its_share_of_the_largest() -> None:
    svg = drawn(item("history", 200), item("skills", 100), item("skills", 0), item("message", 1))

    widths = [int(rect.get("width") or 0) for rect in svg.iter(f"{SVG}rect")][1:]
    bars, wholes = widths[1::2], widths[::2]
    assert bars == [wholes[0], wholes[0] // 2, 2]
    assert [line for line in lines(svg) if line in ("history", "skills", "message")] == [
        "history",
        "skills",
        "message",
    ]


def test_what_was_left_out_is_told_with_its_price_and_reason() -> None:
    svg = drawn(item("message", 1), item("recall", 1234, title="a line", kept=False, reason="gave way"))

    assert lines(svg)[-1] == "left out recall: a line, 1,234 tokens (gave way)"


def test_of_many_that_were_left_out_for_one_reason_the_first_are_named() -> None:
    svg = drawn(*(item("recall", 10, title=f"line {n}", kept=False, reason="gave way") for n in range(30)))

    assert lines(svg)[-2:] == [
        "left out recall: line 2, 10 tokens (gave way)",
        "and 27 more of recall, 270 tokens (gave way)",
    ]


def test_the_picture_grows_with_its_rows() -> None:
    def height(svg: ET.Element) -> int:
        return int(svg.get("height") or 0)

    assert height(drawn(item("message", 1), item("recall", 1, kept=False))) > height(
        drawn(item("message", 1))
    )


def test_a_receipt_without_items_or_limit_can_be_drawn() -> None:
    assert lines(drawn(limit=0)) == ["receipt: 0 of 0 tokens (0%), recipe weft"]


def test_a_long_text_is_cut_and_marked() -> None:
    svg = drawn(item("message", 1, title="t" * 500), item("recall", 1, title="u" * 500, kept=False))

    assert all(len(line) <= 92 for line in lines(svg))
    assert sum(line.endswith("…") for line in lines(svg)) == 2


@pytest.mark.parametrize(
    "hostile",
    [
        "</text><script>alert(1)</script>",
        "\"'&<>]]>",
        "&amp;&#0;&bogus;",
        "<!-- -->",
        "x" * 24 + "&" * 5,
        "\n\t\r",
        "🐙 Ω",
    ],
)
def test_titles_are_text_and_never_marks(hostile: str) -> None:
    svg = drawn(
        item("message", 1, title=hostile),
        item(hostile, 1),
        item("recall", 1, title=hostile, kept=False, reason=hostile),
        recipe=hostile,
    )

    assert {element.tag for element in svg.iter()} == {f"{SVG}svg", f"{SVG}rect", f"{SVG}text"}


@pytest.mark.parametrize("hostile", ["\0", "\x01", "\x1b[31m", "\x0b", "\ufffe", "\uffff", "\ud800"])
def test_characters_that_xml_forbids_do_not_break_the_picture(hostile: str) -> None:
    svg = drawn(item("message", 1, title=f"a{hostile}b"), recipe=hostile)

    assert any(line.startswith("a") and line.endswith("b") for line in lines(svg))


@settings(deadline=None)
@given(st.text(st.characters(), max_size=120), st.text(st.characters(), max_size=120), st.integers(0, 10**9))
def test_any_receipt_is_well_formed(title: str, reason: str, tokens: int) -> None:
    svg = drawn(
        item("message", tokens, title=title), item("x", tokens, title=title, kept=False, reason=reason)
    )

    assert len(lines(svg)) == 5
