"""Times the pages of `weft serve` in a real browser, over a conversation of many turns and many blocks.

First paint is what the browser itself reports. The pages take turns, and each stands beside an empty page of
the same server. Without Chromium only the time of the server is measured.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
from rich.progress import Progress

import weft
from timing import arguments, at_least, out, p50, table, workplace, write_json
from weft.errors import WeftError

GOAL = 3.0
_EMPTY = "/sign-in"
_FIRST_PAINT = """() => new Promise((done) =>
    new PerformanceObserver((list) => {
        const painted = list.getEntriesByName("first-contentful-paint")[0];
        if (painted) done(painted.startTime);
    }).observe({ type: "paint", buffered: true }))"""
_HTML = {"accept": "text/html"}
_BLOCKS_AT_ONCE = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class PageTimes:
    """One page: the time of the server, and until the browser painted; 0 without a browser."""

    name: str
    server_ms: float
    paint_ms: float
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All pages, and how many times as long as the empty page the page of a turn takes to its first paint."""

    turns: int
    blocks: int
    pages: tuple[PageTimes, ...]
    turn_by_empty: float


async def fill(home: Path, turns: int, blocks: int, progress: Progress) -> None:
    """Talk a conversation through in a small window, so that it folds, and make blocks."""
    os.environ["WEFT_HOME"] = str(home)
    config = 'provider = "scripted"\n[http]\nport = 0\nrequests_per_minute = 100000000\n'
    await asyncio.to_thread((home / "config.toml").write_text, config)
    replies = (
        f"Answer {number}: the sea is calm, with a light wind from the west." for number in range(turns * 2)
    )
    limits = weft.ModelContextLimits(max_tokens=8_000, reserved_response_tokens=1_000)
    app = await weft.connect(
        provider=weft.ScriptedProvider(replies, remember=False),
        context=weft.ContextConfig(default_limits=limits),
    )
    task = progress.add_task("talking", total=turns + blocks)
    for number in range(turns):
        await app.ask(f"Question {number}: how is the sea?", session="long")
        progress.advance(task)
    memory = (await app.store.get()).memory
    for start in range(0, blocks, _BLOCKS_AT_ONCE):
        labels = (f"block {number:06}" for number in range(start, min(start + _BLOCKS_AT_ONCE, blocks)))
        await asyncio.gather(
            *(memory.create_block("weft", label, text=f"text of {label}") for label in labels)
        )
        progress.advance(task, _BLOCKS_AT_ONCE)
    await app.close()


def places(address: str) -> dict[str, str]:
    """Return the pages to measure: each name with its address."""
    with httpx.Client(base_url=address, headers=_HTML, timeout=60) as http:
        session = _first(r'href="(/sessions/\w+)"', http.get("/sessions").text)
        turn = _first(r'href="(/turns/\w+)"', http.get(session).text)
        middle = _first(r'href="(/turns/\w+)"', http.get(session, params={"before": 100}).text)
    return {
        "an empty page": _EMPTY,
        "the newest turn": turn,
        "an old turn": middle,
        "what changed": f"{turn}/diff",
        "over time": session,
        "the chat": session.replace("sessions", "talk"),
        "blocks": "/memory",
        "the last blocks": "/memory?page=20",
        "a block": "/memory/block?label=block+000077",
        "a search": "/search?q=sea",
    }


def _first(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    if found is None:
        raise WeftError(f"The page has nothing like {pattern}.")
    return found[1]


def measure(
    address: str, home: Path, rounds: int, progress: Progress, *, paints: bool
) -> tuple[PageTimes, ...]:
    """Open each page in turns, by a client and by a browser."""
    pages = places(address)
    server: dict[str, list[float]] = {name: [] for name in pages}
    paint: dict[str, list[float]] = {name: [] for name in pages}
    sizes: dict[str, int] = {}
    task = progress.add_task("looking", total=rounds)
    with (
        httpx.Client(base_url=address, headers=_HTML, timeout=60) as http,
        _browser(home, is_wanted=paints) as page,
    ):
        for _ in range(rounds):
            for name, place in pages.items():
                started = time.perf_counter()
                answer = http.get(place).raise_for_status()
                server[name].append((time.perf_counter() - started) * 1000)
                sizes[name] = len(answer.content)
                if page is not None:
                    page.goto(f"{address}{place}")
                    paint[name].append(page.evaluate(_FIRST_PAINT))
            progress.advance(task)
    return tuple(
        PageTimes(
            name=name,
            server_ms=p50(server[name]),
            paint_ms=p50(paint[name]) if paint[name] else 0.0,
            bytes=sizes[name],
        )
        for name in pages
    )


@contextmanager
def _browser(home: Path, *, is_wanted: bool) -> Iterator[Any]:
    """Run a browser with one page, if there is one. Its files are in a folder that goes."""
    path = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if not is_wanted or path is None or find_spec("playwright") is None:
        yield None
        return
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - only where it is installed

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(
            executable_path=path,
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
            env={**os.environ, "HOME": str(home)},
        )
        yield running.new_page()
        running.close()


@contextmanager
def _served(home: Path) -> Iterator[str]:
    """Run `weft serve`, from the moment when it prints its address."""
    process = subprocess.Popen(
        (sys.executable, "-m", "weft", "serve"),
        env=os.environ | {"WEFT_HOME": str(home)},
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        for line in process.stderr or ():
            if "HTTP is open at " in line:
                yield line.split("HTTP is open at ")[1].strip()
                break
        else:
            raise WeftError("The server ended before it was open: run `weft serve` to see why.")
    finally:
        process.terminate()
        process.communicate()


def _report(turns: int, blocks: int, pages: tuple[PageTimes, ...]) -> Report:
    by_name = {page.name: page for page in pages}
    turn, empty = by_name["the newest turn"], by_name["an empty page"]
    painted = turn.paint_ms / empty.paint_ms if empty.paint_ms else 0.0
    return Report(turns=turns, blocks=blocks, pages=pages, turn_by_empty=painted)


def _show(report: Report) -> None:
    rows = table("page", "server", "first paint", "kB")
    for page in report.pages:
        paint = f"{page.paint_ms:.0f} ms" if page.paint_ms else "no browser"
        rows.add_row(page.name, f"{page.server_ms:.1f} ms", paint, f"{page.bytes / 1000:.0f}")
    out.print(rows)
    if report.turn_by_empty:
        out.print(
            f"first paint of a turn / of an empty page: {report.turn_by_empty:.2f} (goal at most {GOAL:g})"
        )


def main() -> None:
    parser = arguments("Time the pages of `weft serve` in a browser.")
    parser.add_argument("--turns", type=at_least(110), default=5_000, help="turns of the conversation")
    parser.add_argument("--blocks", type=at_least(100), default=10_000, help="memory blocks")
    parser.add_argument("--rounds", type=at_least(2), default=15, help="how often each page is opened")
    parser.add_argument("--no-browser", action="store_true", help="time the server alone")
    options = parser.parse_args()
    with workplace() as (folder, progress):
        asyncio.run(fill(folder, options.turns, options.blocks, progress))
        with _served(folder) as address:
            pages = measure(address, folder, options.rounds, progress, paints=not options.no_browser)
    report = _report(options.turns, options.blocks, pages)
    write_json(options.json, report)
    _show(report)


if __name__ == "__main__":
    main()
