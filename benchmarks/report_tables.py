"""What the sections of `docs/explanation/benchmarks.md` share: figures as text, ratios, and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

_SAME = 1.1
"""Up to this ratio two times are the same: that much they differ from run to run."""


@dataclass(slots=True)
class Page:
    """A page that grows: its lines, its charts by file name, and where Weft is behind, by the reason."""

    lines: list[str] = field(default_factory=list)
    charts: dict[str, str] = field(default_factory=dict)
    behind: dict[str, list[str]] = field(default_factory=dict)
    reasons: Mapping[tuple[str, str], str] = field(default_factory=dict)

    def heading(self, title: str, *paragraphs: str) -> None:
        self.lines += [f"## {title}", ""]
        for paragraph in paragraphs:
            self.lines += [paragraph, ""]

    def text(self, *paragraphs: str) -> None:
        for paragraph in paragraphs:
            self.lines += [paragraph, ""]

    def table(self, titles: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        self.lines.append(f"| {' | '.join(titles)} |")
        self.lines.append("|---|" + "---:|" * (len(titles) - 1))
        self.lines += [f"| {' | '.join(row)} |" for row in rows]
        self.lines.append("")

    def chart(self, name: str, alternative: str, svg: str) -> None:
        self.charts[name] = svg
        self.lines += [f"![{alternative}]({name})", ""]

    def verdict(
        self, topic: str, peer: str, ours: float | None, theirs: float | None, *, of: str = ""
    ) -> str:
        """Compare two figures of which the smaller is better. Where ours is larger, say why.

        The reasons are by topic and peer; `of` says besides what was measured.
        """
        if not ours or not theirs:
            return ""
        ratio = theirs / ours
        if ratio >= _SAME:
            return f"{number(ratio)}x ahead"
        if ratio > 1 / _SAME:
            return "the same"
        reason = self.note(
            (topic, peer), f"**{topic} {of}".strip() + f"**, against {peer}, {number(1 / ratio)}x"
        )
        return f"**{number(1 / ratio)}x behind**, because {reason}"

    def note(self, key: tuple[str, str], what: str) -> str:
        """Note that Weft is behind, and return the reason."""
        reason = self.reasons.get(key, "nobody has looked for the reason yet")
        self.behind.setdefault(reason, []).append(what)
        return reason


def number(value: float) -> str:
    """Write a number with about two significant digits."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


def ms(value: float | None) -> str:
    if value is None:
        return ""
    if value >= 1000:
        return f"{value / 1000:.1f} s"
    return f"{value:.0f} ms" if value >= 100 else f"{value:.1f} ms" if value >= 10 else f"{value:.2f} ms"


def share(part: float, whole: float) -> str:
    return f"{part / whole:.0%}" if whole else ""


def named(rows: Sequence[Mapping[str, Any]], name: str, **where: Any) -> Mapping[str, Any]:
    """Return the row with a name and other values; an empty one if there is none."""
    for row in rows:
        if row["name"] == name and all(row[key] == value for key, value in where.items()):
            return row
    return {}
