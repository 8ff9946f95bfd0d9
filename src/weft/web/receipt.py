"""A receipt as a picture: one self-contained SVG that any browser or README can show."""

from __future__ import annotations

from collections.abc import Iterator

from weft.types.receipt import Receipt
from weft.web.xml import xml

_WIDTH, _LEFT, _BAR, _ROW, _TOP = 760, 130, 360, 24, 56
_COLOURS = {
    "tools": "#8b949e",
    "instructions": "#4c8eda",
    "blocks": "#a371f7",
    "facts": "#bc8cff",
    "skills": "#2ea3a3",
    "tool_docs": "#56b6c2",
    "tool_rules": "#6cb6ff",
    "summaries": "#c69026",
    "history": "#3fa45b",
    "bootstrap": "#d4a72c",
    "memory_file": "#d1604d",
    "recall": "#e5786d",
    "tasks": "#57ab5a",
    "activity": "#adbac7",
    "message": "#e6edf3",
    "framing": "#6e7681",
    "standing": "#db61a2",
    "changes": "#39c5cf",
    "steps": "#39a0a0",
}


def receipt_svg(receipt: Receipt) -> str:
    """Draw bars per layer, then what was left out and why."""
    layers = receipt.by_layer
    largest = max(layers.values(), default=1) or 1
    rows: list[str] = []
    y = _TOP
    for layer, tokens in layers.items():
        titles = receipt.titles(layer)
        rows.append(_bar(y, layer, tokens, tokens / largest, titles))
        y += _ROW
    for line in _left_out(receipt):
        rows.append(_text(16, y + 16, line, fill="#f0883e"))
        y += _ROW
    share = receipt.total_tokens / receipt.limit if receipt.limit else 0
    head = f"{receipt.total_tokens:,} of {receipt.limit:,} tokens ({share:.0%}), recipe {receipt.recipe}"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{y + 16}" '
            f'viewBox="0 0 {_WIDTH} {y + 16}" role="img" aria-label="{xml(head)}" '
            'font-family="ui-monospace, Menlo, Consolas, monospace" font-size="13">',
            f'<rect width="{_WIDTH}" height="{y + 16}" rx="8" fill="#0d1117"/>',
            _text(16, 32, f"receipt: {head}", fill="#e6edf3", weight="bold"),
            *rows,
            "</svg>\n",
        ]
    )


def _left_out(receipt: Receipt) -> Iterator[str]:
    for group in receipt.left_out():
        for item in group.items:
            yield f"left out {item.layer}: {item.title}, {item.tokens:,} tokens ({item.reason})"
        if group.more:
            yield f"{group.rest}, {group.more_tokens:,} tokens ({group.reason})"


def _bar(y: int, layer: str, tokens: int, share: float, titles: str) -> str:
    colour = _COLOURS.get(layer, "#adbac7")
    width = max(round(share * _BAR), 2)
    return "\n".join(
        [
            _text(16, y + 16, layer, fill=colour),
            f'<rect x="{_LEFT}" y="{y + 4}" width="{_BAR}" height="15" rx="3" fill="#21262d"/>',
            f'<rect x="{_LEFT}" y="{y + 4}" width="{width}" height="15" rx="3" fill="{colour}"/>',
            _text(_LEFT + _BAR + 52, y + 16, f"{tokens:,}", fill="#e6edf3", anchor="end"),
            _text(_LEFT + _BAR + 64, y + 16, _short(titles, 25), fill="#8b949e"),
        ]
    )


def _text(x: int, y: int, text: str, *, fill: str, weight: str = "normal", anchor: str = "start") -> str:
    return (
        f'<text x="{x}" y="{y}" fill="{fill}" font-weight="{weight}" text-anchor="{anchor}">'
        f"{xml(_short(text, 92))}</text>"
    )


def _short(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
