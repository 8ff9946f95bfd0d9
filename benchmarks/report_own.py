"""The section of `docs/explanation/benchmarks.md` that compares Weft with itself, and with goals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from report_tables import Page, ms, number


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure: its value, its text, the most that it should be, and what it is measured beside."""

    what: str
    value: float
    text: str
    yardstick: str
    goal: float | None = None
    goal_text: str = ""
    topic: str = ""


def own_section(page: Page, figures: Mapping[str, Any]) -> None:
    """Write one table of ratios, and one of what requests cost."""
    if "stability" in figures:
        _stability(page, figures["stability"])
    rows = [
        _row(page, figure)
        for name, write in _WRITERS.items()
        if name in figures
        for figure in write(figures[name])
    ]
    if rows:
        page.heading(
            "Start, build, store, wire, server and heartbeat",
            "Each figure has its yardstick beside it, measured in the same run. `benchmarks/README.md` says "
            "what each script does.",
        )
        page.table(("what", "figure", "goal", "yardstick"), rows)


def _row(page: Page, figure: Figure) -> tuple[str, str, str, str]:
    """Write a figure beside its goal. One that misses it says why."""
    text = figure.text
    if figure.goal is not None and figure.value > figure.goal:
        what = f"**{figure.what}**, {figure.text} instead of {figure.goal_text}"
        reason = page.note((figure.topic, "its goal"), what)
        text = f"**{figure.text}**, because {reason}"
    return figure.what, text, figure.goal_text, figure.yardstick


def _stability(page: Page, rows: list[dict[str, Any]]) -> None:
    page.heading(
        "Stability and cost",
        "A conversation of many turns with recall, tools and edits of memory. *Share* is the part of a "
        "request that is the same from the beginning as the one before; costs are by the rules of vendors' "
        "caches, relative to writing everything anew each turn (*rebuild*).",
        "`python benchmarks/stability.py [PATH]`",
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


def _build(data: dict[str, Any]) -> Iterator[Figure]:
    of_count, growth = data["of_count_10k"], data["growth"]
    counting = f"counting {ms(data['rows'][1]['count_ms'])}"
    what = "build with 10k messages in a list, of counting them"
    yield Figure(what, of_count, f"{of_count:.3f}", counting, 0.05, "0.05", "build in a list")
    first = f"1k {ms(data['rows'][0]['p50_ms'])}"
    yield Figure("build with 100k messages, against 1k", growth, f"{growth:.2f}x", first, 1.2, "1.2x")
    of_count, growth, stored = data["stored_of_count_10k"], data["stored_growth"], data["stored"]
    what = "build in an epoch with 10k messages in the database, of counting them"
    yield Figure(what, of_count, f"{of_count:.3f}", counting, 0.05, "0.05", "build in an epoch")
    size = f"{stored[-1]['messages']:,} messages in the database, against 1k"
    first = f"1k {ms(stored[0]['p50_ms'])}"
    what = f"build in an epoch, {size}"
    yield Figure(what, growth, f"{growth:.2f}x", first, 1.5, "1.5x", "build in an epoch")
    of_count, growth = data["thanks_of_count_10k"], data["thanks_growth"]
    what = "the same for a message that recalls nothing, 10k messages, of counting them"
    yield Figure(what, of_count, f"{of_count:.3f}", counting, 0.05, "0.05", "build without recall")
    first = f"1k {ms(stored[0]['thanks_p50_ms'])}"
    yield Figure(
        f"the same for a message that recalls nothing, {size}", growth, f"{growth:.2f}x", first, 1.5, "1.5x"
    )


def _store(data: dict[str, Any]) -> Iterator[Figure]:
    inserts, builds = data["inserts"], data["builds"]
    times, rate = 1 / inserts["of_bare"], f"bare {inserts['bare']:,.0f}/s"
    yield Figure("insert one by one, durable, against a bare insert", times, f"{times:.1f}x", rate)
    for row in data["searches"]:
        what = f"search of {row['messages']:,} messages, against plain FTS5"
        plain = f"plain {ms(row['raw_p50_ms'])}"
        yield Figure(what, row["ratio"], f"{row['ratio']:.2f}x", plain, 1.3, "1.3x")
    what = (
        f"build from {builds['long_messages']:,} messages in the file, against {builds['short_messages']:,}"
    )
    short = f"short {ms(builds['short_p50_ms'])}"
    yield Figure(what, builds["ratio"], f"{builds['ratio']:.2f}x", short, 1.5, "1.5x")


def _wire(data: list[dict[str, Any]]) -> Iterator[Figure]:
    for row in data:
        what = f"request of {row['messages']} messages for {row['provider']}"
        took = row["write_p50_ms"]
        yield Figure(what, took, ms(took), f"its JSON {ms(row['dump_p50_ms'])}")


def _serve(data: dict[str, Any]) -> Iterator[Figure]:
    what = "a turn over HTTP besides the model, against a bare handler"
    bare = f"bare handler {ms(data['bare_p50_ms'])}"
    yield Figure(what, data["ratio"], f"{data['ratio']:.1f}x", bare, 3.0, "3x", "serve")


def _pages(data: dict[str, Any]) -> Iterator[Figure]:
    empty = next(page for page in data["pages"] if page["name"] == "an empty page")
    what = f"first paint of a turn's page, {data['turns']:,} turns and {data['blocks']:,} blocks"
    beside, ratio = f"an empty page {ms(empty['paint_ms'])}", data["turn_by_empty"]
    if ratio:  # else there was no browser
        yield Figure(what, ratio, f"{ratio:.2f}x", beside, 3.0, "3x", "pages")


def _heartbeat(data: list[dict[str, Any]]) -> Iterator[Figure]:
    worst = max(data, key=lambda row: float(row["worst_ms"]))
    late = sum(row["worst_ms"] > 100 for row in data)
    what = f"longest stop of the event loop, {len(data)} ways in"
    where = f"{worst['entry']}; {late} above the goal"
    yield Figure(what, worst["worst_ms"], ms(worst["worst_ms"]), where, 100.0, "100 ms", "heartbeat")


def _first_token(data: dict[str, Any]) -> Iterator[Figure]:
    what = f"first token of the local model, live recipe against epochs, {data['turns']} turns"
    times = f"epochs {ms(data['epoch_p50'] * 1000)}"
    yield Figure(what, data["live_by_epoch"], f"{number(data['live_by_epoch'])}x", times)


def _startup(data: dict[str, Any]) -> Iterator[Figure]:
    starts = {row["what"]: row for row in data["starts"] if row["p50_ms"] is not None}
    if ask := starts.get("weft ask"):
        beside = f"Python alone {ms(ask['p50_ms'] - ask['own_ms'])}"
        what, took = "`weft ask` in a fresh process, besides the model", ask["p50_ms"]
        yield Figure(what, took, ms(took), beside, 400.0, "400 ms", "startup")


def _recipes(data: list[dict[str, Any]]) -> Iterator[Figure]:
    slowest = max(data, key=lambda row: float(row["p50_ms"]))
    what = f"slowest build of the {len(data)} recipes ({slowest['recipe']})"
    promise = "the promise of miniclaw's document"
    yield Figure(what, slowest["p50_ms"], ms(slowest["p50_ms"]), promise, 50.0, "50 ms")


_WRITERS: dict[str, Callable[[Any], Iterator[Figure]]] = {
    "startup": _startup,
    "build": _build,
    "recipes": _recipes,
    "store": _store,
    "wire": _wire,
    "serve": _serve,
    "pages": _pages,
    "heartbeat": _heartbeat,
    "first_token": _first_token,
}
