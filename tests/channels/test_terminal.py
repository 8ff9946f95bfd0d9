"""Receipts at a terminal."""

import io

import pytest
from rich.console import Console

from weft.channels.terminal import show_receipt
from weft.types.receipt import Receipt, ReceiptItem


def item(layer: str, title: str, tokens: int, *, kept: bool = True) -> ReceiptItem:
    reason = "" if kept else "the limit of 12,000 tokens was reached before it"
    return ReceiptItem(layer=layer, source=layer, title=title, tokens=tokens, kept=kept, reason=reason)


RECEIPT = Receipt(
    items=(
        item("instructions", "SOUL.md", 1_200),
        item("memory_file", "what the owner likes and does not like", 12_345),
        item("message", "the message", 100),
        item("history", "messages 1-40", 98_765, kept=False),
    ),
    limit=120_000,
    recipe="weft",
)


def shown(width: int, receipt: Receipt = RECEIPT) -> str:
    out = Console(file=io.StringIO(), width=width, color_system=None)
    show_receipt(receipt, out)
    assert isinstance(out.file, io.StringIO)
    return out.file.getvalue()


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_a_receipt_keeps_its_numbers_and_names_however_narrow_it_is(width: int) -> None:
    text = shown(width)

    for word in ("13,645", "120,000", "1,200", "12,345", "100", "98,765", "instructions", "memory_file"):
        assert word in text
    assert ("█" in text) is (width >= 80)
    assert max(len(line.rstrip()) for line in text.splitlines()) <= width


@pytest.mark.parametrize("width", range(20, 51))
def test_a_long_list_of_titles_costs_no_number_in_a_narrow_terminal(width: int) -> None:
    items = [item("skills", f"a-skill-with-a-long-name-{n}", 1_111) for n in range(10)]
    items += [item("instructions", "SOUL.md", 222), item("a_layer_of_a_plugin_with_a_name", "x", 33)]
    items += [item("history", "messages-1-to-40-of-the-session", 98_765, kept=False)]

    text = shown(width, Receipt(items=tuple(items), limit=120_000, recipe="weft"))

    lines = {line.split()[0]: line for line in text.splitlines() if line.strip()}
    assert " 11,110" in lines["skills"]
    assert lines["skills"].endswith(("…", "11,110"))
    assert " 222" in lines["instructions"]
    assert any(line.startswith("a_layer") and " 33" in line for line in lines.values())
    assert "98,765" in text
    assert max(map(len, text.splitlines())) <= width


def test_a_bar_is_the_share_of_the_limit() -> None:
    lines = {line.split()[0]: line for line in shown(100).splitlines() if "░" in line}

    assert {layer: line.count("█") for layer, line in lines.items()} == {
        "instructions": 0,
        "memory_file": 3,
        "message": 0,
    }


def test_of_many_left_out_pieces_of_one_layer_and_reason_the_first_are_named() -> None:
    recalled = [item("recall", f"line {n}", 10 + n, kept=False) for n in range(40)]
    items = (*recalled, *(item("skills", f"skill {n}", 5, kept=False) for n in range(4)), recalled[0])
    receipt = Receipt(items=items, limit=120_000, recipe="weft")

    text = shown(120, receipt)
    out = Console(file=io.StringIO(), width=120, color_system=None)
    show_receipt(receipt, out, most=None)
    assert isinstance(out.file, io.StringIO)

    assert text.count("left out recall: line ") == 3
    [rest] = [line.split() for line in text.splitlines() if line.startswith("and ")]
    assert rest[:7] == "and 38 more of recall 1,157 the".split()
    assert text.count("left out skills: skill ") == 4, "a line for one more would be no shorter"
    assert out.file.getvalue().count("left out recall: line ") == 41
