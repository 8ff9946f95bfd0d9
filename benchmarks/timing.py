"""Times in milliseconds, and what every benchmark script shares: arguments, progress, tables, JSON."""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

out = Console(highlight=False, width=None if sys.stdout.isatty() else 160)
_err = Console(stderr=True)


async def milliseconds(work: Awaitable[object]) -> float:
    """Measure how long the work takes."""
    started = time.perf_counter()
    await work
    return (time.perf_counter() - started) * 1000


def p50(times: Sequence[float]) -> float:
    return statistics.median(times)


def p95(times: Sequence[float]) -> float:
    return statistics.quantiles(times, n=20)[-1]


def arguments(description: str) -> argparse.ArgumentParser:
    """Make the parser of a script, with the option that all of them have."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--json", type=Path, metavar="OUT", help="also write all figures to this file")
    return parser


def at_least(smallest: int) -> Any:
    """Make a type for `add_argument` that takes whole numbers from `smallest` on."""

    def number(text: str) -> int:
        if int(text) < smallest:
            raise ValueError
        return int(text)

    number.__name__ = f"number of at least {smallest}"
    return number


@contextmanager
def workplace() -> Iterator[tuple[Path, Progress]]:
    """Give a temporary folder, and a progress bar if somebody watches."""
    with (
        tempfile.TemporaryDirectory(prefix="weft-bench-") as folder,
        Progress(console=_err, transient=True, disable=not _err.is_terminal) as progress,
    ):
        yield Path(folder), progress


def versions(*packages: str) -> dict[str, str]:
    """Return the version of each package that is installed."""
    installed: dict[str, str] = {}
    for package in packages:
        with suppress(metadata.PackageNotFoundError):
            installed[package] = metadata.version(package)
    return installed


def table(*titles: str) -> Table:
    columns = Table(box=None, pad_edge=False)
    for title in titles:
        columns.add_column(title, justify="left" if title == "what" else "right")
    return columns


def write_json(path: Path | None, report: Any) -> None:
    """Write a report, or a list of them, to a file, if one was named."""
    if path is not None:
        data = [asdict(row) for row in report] if isinstance(report, list) else asdict(report)
        path.write_text(json.dumps(data, indent=1) + "\n", "utf-8")
