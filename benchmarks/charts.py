"""Bar charts as SVG files: plain text, readable on a light and on a dark page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10

_WIDTH, _LEFT, _RIGHT, _TOP, _STEP, _HEIGHT = 760, 290, 90, 62, 28, 16
_STYLE = """<style>
text { fill: #1f2328; font-family: ui-sans-serif, system-ui, sans-serif; font-size: 13px; }
.title { font-size: 15px; font-weight: 600; }
.quiet { fill: #59636e; }
.bar { fill: #8c959f; }
.ours { fill: #0969da; }
.axis { stroke: #d1d9e0; stroke-width: 1; }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3; }
.quiet { fill: #9198a1; }
.bar { fill: #656c76; }
.ours { fill: #4493f8; }
.axis { stroke: #3d444d; }
}
</style>"""


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar: its name, its value, and the text behind it."""

    name: str
    value: float
    label: str

    @property
    def is_ours(self) -> bool:
        return self.name.lower().startswith(("weft", "import weft"))


def chart(title: str, note: str, bars: Sequence[Bar], *, is_log: bool = False) -> str:
    """Draw horizontal bars. On a logarithmic scale each line of the axis is ten times the one before."""
    low, high = _range(bars, is_log=is_log)
    height = _TOP + _STEP * len(bars) + 14
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
        f'viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{escape(title)}">',
        _STYLE,
        _text(16, 24, title, "title"),
        _text(16, 44, note, "quiet"),
    ]
    for tick in _ticks(low, high, is_log=is_log):
        x = _place(tick, low, high, is_log=is_log)
        parts.append(f'<line class="axis" x1="{x:.1f}" y1="{_TOP - 6}" x2="{x:.1f}" y2="{height - 10}"/>')
    for at, bar in enumerate(bars):
        y = _TOP + at * _STEP
        end = max(_place(bar.value, low, high, is_log=is_log), _LEFT + 2)
        kind = "ours" if bar.is_ours else "bar"
        parts.append(_text(_LEFT - 10, y + 13, bar.name, "", anchor="end"))
        parts.append(
            f'<rect class="{kind}" x="{_LEFT}" y="{y}" width="{end - _LEFT:.1f}" height="{_HEIGHT}" rx="2"/>'
        )
        parts.append(_text(end + 6, y + 13, bar.label, "quiet"))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _range(bars: Sequence[Bar], *, is_log: bool) -> tuple[float, float]:
    """Return the ends of the axis: from zero on, or whole powers of ten around all values."""
    values = [bar.value for bar in bars if bar.value > 0] or [1.0]
    if not is_log:
        return 0.0, max(values)
    low = floor(log10(min(values) / 2))  # the shortest bar is not invisible
    return 10.0**low, 10.0 ** max(ceil(log10(max(values))), low + 1)


def _ticks(low: float, high: float, *, is_log: bool) -> list[float]:
    if not is_log:
        return [0.0]
    return [low * 10**power for power in range(round(log10(high / low)) + 1)]


def _place(value: float, low: float, high: float, *, is_log: bool) -> float:
    room = _WIDTH - _LEFT - _RIGHT
    if not is_log:
        return _LEFT + room * value / high
    return _LEFT + room * log10(max(value, low) / low) / log10(high / low)


def _text(x: float, y: float, text: str, kind: str, *, anchor: str = "start") -> str:
    attribute = f' class="{kind}"' if kind else ""
    return f'<text{attribute} x="{x:.1f}" y="{y}" text-anchor="{anchor}">{escape(text)}</text>'
