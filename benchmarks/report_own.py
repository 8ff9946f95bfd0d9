"""The section of `docs/benchmarks.md` with the scripts that compare Weft with itself, and with goals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from report_tables import Page, ms, number

_Row = tuple[str, str, str, str]


def own_section(page: Page, figures: Mapping[str, Any]) -> None:
    """Write one table of ratios, and one of what requests cost."""
    if "stability" in figures:
        _stability(page, figures["stability"])
    rows = [row for name, write in _WRITERS.items() if name in figures for row in write(figures[name])]
    if rows:
        page.heading(
            "Build, store, wire, server and heartbeat",
            "Each figure has its yardstick beside it, measured in the same run. `benchmarks/README.md` says "
            "what each script does.",
        )
        page.table(("what", "figure", "goal", "yardstick"), rows)


def _stability(page: Page, rows: list[dict[str, Any]]) -> None:
    page.heading(
        "Stability and cost",
        "A conversation of many turns with recall, tools and edits of memory. *Share* is the part of a "
        "request that is the same from the beginning as the one before; costs are by the rules of vendors' "
        "caches, relative to writing everything anew each turn (*rebuild*).",
        "`python benchmarks/stability.py`",
    )
    titles = ("way", "share", "tokens sent", "Anthropic", "automatic 0.1", "automatic 0.5", "breakpoints")
    page.table(
        titles,
        [
            (
                row["name"],
                f"{row['share']:.3f}",
                f"{row['of_rebuild']:.2f} of rebuild",
                *(f"{row[key]:.2f}" for key in ("anthropic", "automatic", "automatic_half", "breakpoints")),
            )
            for row in rows
        ],
    )


def _build(data: dict[str, Any]) -> Iterator[_Row]:
    yield (
        "build with 10k messages in a list",
        f"{data['of_count_10k']:.4f} of counting them",
        "0.05",
        f"counting {ms(data['rows'][1]['count_ms'])}",
    )
    yield (
        "build with 100k messages, against 1k",
        f"{data['growth_100k']:.2f}x",
        "1.2x",
        f"1k {ms(data['rows'][0]['p50_ms'])}",
    )
    stored = data["stored"]
    yield (
        f"build in an epoch, {stored[-1]['messages']:,} in the database, against 1k",
        f"{data['stored_growth']:.2f}x",
        "1.5x",
        f"1k {ms(stored[0]['p50_ms'])}",
    )


def _store(data: dict[str, Any]) -> Iterator[_Row]:
    inserts, builds = data["inserts"], data["builds"]
    rate = f"bare {inserts['bare']:,.0f}/s"
    yield "insert one by one, against a bare insert", f"{inserts['of_bare']:.2f} of its rate", "", rate
    for row in data["searches"]:
        what = f"search of {row['messages']:,} messages, against plain FTS5"
        yield what, f"{row['ratio']:.2f}x", "1.3x", f"plain {ms(row['raw_p50_ms'])}"
    what = (
        f"build from {builds['long_messages']:,} messages in the file, against {builds['short_messages']:,}"
    )
    yield what, f"{builds['ratio']:.2f}x", "1.5x", f"short {ms(builds['short_p50_ms'])}"


def _wire(data: list[dict[str, Any]]) -> Iterator[_Row]:
    for row in data:
        what = f"request of {row['messages']} messages for {row['provider']}"
        yield what, ms(row["write_p50_ms"]), "", f"its JSON {ms(row['dump_p50_ms'])}"


def _serve(data: dict[str, Any]) -> Iterator[_Row]:
    bare = f"bare handler {ms(data['bare_p50_ms'])}"
    yield "a turn over HTTP besides the model, against a bare handler", f"{data['ratio']:.1f}x", "4x", bare


def _heartbeat(data: list[dict[str, Any]]) -> Iterator[_Row]:
    worst = max(data, key=lambda row: float(row["worst_ms"]))
    late = sum(row["worst_ms"] > 100 for row in data)
    what = f"longest stop of the event loop, {len(data)} ways in"
    yield what, ms(worst["worst_ms"]), "100 ms", f"{worst['entry']}; {late} above the goal"


def _first_token(data: dict[str, Any]) -> Iterator[_Row]:
    what = f"first token of the local model, live recipe against epochs, {data['turns']} turns"
    yield what, f"{number(data['live_by_epoch'])}x", "", f"epochs {ms(data['epoch_p50'] * 1000)}"


def _recipes(data: list[dict[str, Any]]) -> Iterator[_Row]:
    slowest = max(data, key=lambda row: float(row["p50_ms"]))
    what = f"slowest build of the {len(data)} recipes ({slowest['recipe']})"
    yield what, ms(slowest["p50_ms"]), "50 ms", "the promise of miniclaw's document"


_WRITERS: dict[str, Callable[[Any], Iterator[_Row]]] = {
    "build": _build,
    "recipes": _recipes,
    "store": _store,
    "wire": _wire,
    "serve": _serve,
    "heartbeat": _heartbeat,
    "first_token": _first_token,
}
