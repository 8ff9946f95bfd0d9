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


def shown(width: int) -> str:
    out = Console(file=io.StringIO(), width=width, color_system=None)
    show_receipt(RECEIPT, out)
    assert isinstance(out.file, io.StringIO)
    return out.file.getvalue()


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_a_receipt_keeps_its_numbers_and_names_however_narrow_it_is(width: int) -> None:
    text = shown(width)

    for word in ("13,645", "120,000", "1,200", "12,345", "100", "98,765", "instructions", "memory_file"):
        assert word in text
    assert ("█" in text) is (width >= 80)
    assert max(len(line.rstrip()) for line in text.splitlines()) <= width


def test_a_bar_is_the_share_of_the_limit() -> None:
    lines = {line.split()[0]: line for line in shown(100).splitlines() if "░" in line}

    assert {layer: line.count("█") for layer, line in lines.items()} == {
        "instructions": 0,
        "memory_file": 3,
        "message": 0,
    }
