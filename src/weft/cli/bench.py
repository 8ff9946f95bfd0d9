"""`weft bench`: how fast this machine is, as ratios within one run.

Machines are noisy, so no number stands alone: every figure has one beside it that was measured in the
same minutes, and what is compared takes turns.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import Progress
from rich.table import Table

from weft.cli.measure.build import COUNT_GOAL, GROWTH_GOAL, BuildReport, measure_build
from weft.cli.measure.search import SEARCH_GOAL, WARM_UP
from weft.cli.measure.serve import OVERHEAD_GOAL, Load, measure_serve
from weft.cli.measure.store import BUILD_GOAL, Effort, StoreReport, measure_store
from weft.cli.measure.wire import measure_wire
from weft.cli.options import AsJson, err, out, run
from weft.errors import ConfigError

app = typer.Typer(no_args_is_help=True, help="Measure this machine's speed, as ratios within one run.")
LEAST, LARGE = 1_000, 1_000_000


@app.callback()
def bench() -> None:
    """Measure this machine's speed, as ratios within one run."""


@app.command()
def build(
    rounds: Annotated[int, typer.Option("--rounds", min=5, help="How many builds of each size.")] = 40,
    skills: Annotated[int, typer.Option("--skills", min=0, help="How many skills the workspace has.")] = 100,
    as_json: AsJson = False,
) -> None:
    """Time a build with many skills and histories of 1k, 10k and 100k messages."""
    with _folder() as folder, _progress() as progress:
        report = run(measure_build(folder, skills, rounds, progress))
    if as_json:
        typer.echo(json.dumps(asdict(report)))
    else:
        _show_build(report)


@app.command()
def wire(
    messages: Annotated[int, typer.Option("--messages", min=4, help="How long the conversation is.")] = 1_000,
    rounds: Annotated[int, typer.Option("--rounds", min=5, help="How often each request is written.")] = 40,
    as_json: AsJson = False,
) -> None:
    """Time writing a request of 1,000 messages with tools for each provider, and checking it."""
    with _progress() as progress:
        rows = measure_wire(messages, rounds, progress)
    if as_json:
        typer.echo(json.dumps([asdict(row) for row in rows]))
        return
    table = _table("what", "write p50", "p95", "check p50", "to bytes p50", "size", "check / write")
    for row in rows:
        times = (row.write_p50_ms, row.write_p95_ms, row.check_p50_ms, row.dump_p50_ms)
        ratio = row.check_p50_ms / row.write_p50_ms
        table.add_row(
            row.provider, *(f"{one:.2f} ms" for one in times), f"{row.bytes / 1e3:,.0f} kB", f"{ratio:.2f}"
        )
    out.print(table)


@app.command()
def store(
    messages: Annotated[
        str, typer.Option("--messages", metavar="N,N", help="How many messages to search, smallest first.")
    ] = "10000,100000",
    large: Annotated[bool, typer.Option("--large", help="Search a million messages, too.")] = False,
    rounds: Annotated[
        int, typer.Option("--rounds", min=5, help="How often each query, edit, load and build is timed.")
    ] = 100,
    edits: Annotated[int, typer.Option("--edits", min=1, help="How many edits the long block has.")] = 1_000,
    as_json: AsJson = False,
) -> None:
    """Time writing, searching beside plain full-text search, block edits, and builds from the database."""
    sizes = _sizes(messages) | ({LARGE} if large else set())
    effort = Effort(messages=tuple(sorted(sizes)), rounds=rounds, edits=edits)
    with _folder() as folder, _progress() as progress:
        report = run(measure_store(folder, effort, progress))
    if as_json:
        typer.echo(json.dumps(asdict(report)))
    else:
        _show_store(report)


@app.command()
def serve(
    sessions: Annotated[int, typer.Option("--sessions", min=2, help="How many people write.")] = 1_000,
    turns: Annotated[int, typer.Option("--turns", min=2, help="How often each of them writes.")] = 2,
    at_once: Annotated[int, typer.Option("--at-once", min=1, help="How many at the same time.")] = 50,
    delay_ms: Annotated[float, typer.Option("--delay-ms", min=0, help="How long the model takes.")] = 1000.0,
    as_json: AsJson = False,
) -> None:
    """Time `weft serve` with many conversations at once, beside a handler that only stores a message."""
    load = Load(sessions=sessions, turns=turns, at_once=at_once, delay_ms=delay_ms)
    with _folder() as folder, _progress() as progress:
        report = run(measure_serve(folder, load, progress))
    if as_json:
        typer.echo(json.dumps(asdict(report) | {"ratio": report.ratio}))
        return
    table = _table("what", "p50", "p95")
    ours, bare = (report.overhead_p50_ms, report.overhead_p95_ms), (report.bare_p50_ms, report.bare_p95_ms)
    table.add_row("a turn, without the model", *(f"{one:.1f} ms" for one in ours))
    table.add_row("a bare handler", *(f"{one:.1f} ms" for one in bare))
    out.print(table)
    out.print(
        f"turn / bare: {report.ratio:.1f} (goal at most {OVERHEAD_GOAL:g}); without pauses "
        f"{report.per_second:,.0f} turns a second of {report.bound_per_second:,.0f} that the delay allows, "
        f"and {report.in_step_p50_ms:.1f} ms at the median, since all get into step"
    )
    grown = _table("sessions", "p50", "memory")
    for step in report.growth:
        p50, memory = f"{step.overhead_p50_ms:.1f} ms", f"{step.memory_mb:.0f} MB"
        grown.add_row(f"{step.sessions:,}", p50, memory)
    out.print(grown)
    out.print(f"memory at the end: {report.memory_mb:.0f} MB")


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="weft-bench-") as folder:
        yield Path(folder)


def _progress() -> Progress:
    return Progress(console=err, transient=True, disable=not err.is_terminal)


def _sizes(text: str) -> set[int]:
    """Numbers with commas between them. Raises ConfigError if they are not, or too small to tell anything."""
    try:
        sizes = {int(part) for part in text.split(",")}
    except ValueError:
        sizes = set()
    if not sizes or min(sizes) < LEAST:
        raise ConfigError(
            f"`--messages` is {text!r}: give whole numbers from {LEAST} on, such as 10000,100000."
        )
    return sizes


def _show_build(report: BuildReport) -> None:
    table = _table("messages", "build p50", "p95", "first build", "counting anew")
    for row in report.rows:
        figures = (row.p50_ms, row.p95_ms, row.first_ms, row.count_ms)
        table.add_row(f"{row.messages:,}", *(f"{figure:.2f} ms" for figure in figures))
    out.print(table)
    out.print(f"build at 10k / counting it anew: {report.of_count_10k:.4f} (goal at most {COUNT_GOAL:.4f})")
    out.print(f"build at 100k / build at 1k: {report.growth_100k:.2f} (goal at most {GROWTH_GOAL})")


def _show_store(report: StoreReport) -> None:
    _show_searches(report)
    inserts, blocks, builds = report.inserts, report.blocks, report.builds
    table = _table("what", "p50 or rate", "beside it")
    table.add_row("inserts, one by one, durable", f"{inserts.singly:,.0f}/s", "")
    table.add_row(
        "inserts, 1,000 in a call", f"{inserts.bulk:,.0f}/s", f"{inserts.bulk / inserts.singly:.0f}x"
    )
    many = f"{inserts.concurrent / inserts.singly:.0f}x"
    table.add_row("inserts, many calls at once", f"{inserts.concurrent:,.0f}/s", many)
    long = f"with {blocks.edits:,} edits"
    table.add_row(
        "edit of a block, durable", f"{blocks.edit_new_ms:.2f} ms", f"{long} {blocks.edit_long_ms:.2f} ms"
    )
    table.add_row(
        "load of a block, fresh store", f"{blocks.load_new_ms:.2f} ms", f"{long} {blocks.load_long_ms:.2f} ms"
    )
    long = f"of {builds.long_messages:,} {builds.long_p50_ms:.2f} ms"
    table.add_row(f"build, session of {builds.short_messages:,}", f"{builds.short_p50_ms:.2f} ms", long)
    out.print()
    out.print(table)
    out.print()
    for row in report.searches:
        out.print(
            f"search of {row.messages:,} / plain FTS5: {row.ratio:.2f} (goal at most {SEARCH_GOAL}); "
            f"without the thread in plain: {row.ratio_to_raw_inside:.2f}; "
            f"to lean SQL: {row.ratio_to_lean:.2f}; same hits: {row.agreement:.0%}"
        )
    out.print(
        f"build from {builds.long_messages:,} messages / from {builds.short_messages:,}: "
        f"{builds.ratio:.2f} (goal at most {BUILD_GOAL})"
    )
    out.print(
        f"Warm-up: {WARM_UP} queries at each size, one build of each session, one append. One agent owns all "
        "messages that are searched; builds recall nothing; lean SQL picks the best ten before it reads them."
    )


def _show_searches(report: StoreReport) -> None:
    table = _table(
        "messages",
        "written",
        "file/message",
        "text/message",
        "search p50",
        "p95",
        "plain p50",
        "p95",
        "lean p50",
    )
    for size, row in zip(report.sizes, report.searches, strict=True):
        times = (row.ours_p50_ms, row.ours_p95_ms, row.raw_p50_ms, row.raw_p95_ms, row.lean_p50_ms)
        table.add_row(
            f"{size.messages:,}",
            f"{size.grown_per_second:,.0f}/s",
            f"{size.file_bytes_per_message:,.0f} B",
            f"{size.text_bytes_per_message:,.0f} B",
            *(f"{figure:.2f} ms" for figure in times),
        )
    out.print(table)


def _table(*titles: str) -> Table:
    table = Table(box=None, pad_edge=False)
    for title in titles:
        table.add_column(title, justify="left" if title == "what" else "right")
    return table
