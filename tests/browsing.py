"""A real `weft serve` and a real Chromium, for tests that use the pages as a person does."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from weft.testing.vendors import LoopbackVendor

NEEDS_BROWSER = "WEFT_NEEDS_BROWSER"
"""Set where the tests of the pages must run, as in CI: then a missing browser is a failure."""
HOW = "the pages are tested in Chromium: `apt install chromium`, or set CHROMIUM to its path"
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
BROWSER = "true"
"""What `weft` opens an address with: a program that does nothing."""
_SECONDS = 20.0


def chromium() -> str:
    """Return the path of a browser, or skip the test where a person has none."""
    path = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        if os.environ.get(NEEDS_BROWSER):
            pytest.fail(f"There is no browser: {HOW}.")
        pytest.skip(HOW)
    return path


@contextmanager
def browser() -> Iterator[Any]:
    """Run a browser for a file of tests."""
    path = chromium()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=path, headless=True, args=list(ARGUMENTS))
        yield running
        running.close()


@dataclass
class Window:
    """A window of a browser with one page in it, and what its console said."""

    page: Any
    address: str
    problems: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def open(self, path: str) -> Any:
        self.page.goto(f"{self.address}{path}")
        return self.page


@contextmanager
def window(running: Any, address: str, **options: Any) -> Iterator[Window]:
    """Open a window of its own, with cookies of its own. Whatever its console complains of is noted."""
    usual = {"viewport": {"width": 1100, "height": 800}, "locale": "en-US"}
    context = running.new_context(**(usual | options))
    context.set_default_timeout(10_000)
    one = Window(context.new_page(), address)

    def note(said: Any) -> None:
        if said.type in ("error", "warning"):
            one.problems.append(said.text)

    one.page.on("console", note)
    one.page.on("pageerror", lambda error: one.problems.append(str(error)))
    one.page.on("request", lambda request: one.asked.append(request.url))
    try:
        yield one
    finally:
        context.close()


def follow(place: Any) -> None:
    """Click what leads to a page, and wait for that page: until then the old one would answer."""
    with place.page.expect_navigation():
        place.click()


@dataclass(frozen=True)
class Server:
    """A server that runs in a home of its own."""

    address: str
    home: Path
    said: Path
    model: LoopbackVendor
    process: subprocess.Popen[bytes]

    def stop(self) -> None:
        """End the server as a person does who stops the command."""
        self.process.terminate()
        self.process.wait(_SECONDS)

    def weft(self, *arguments: str, code: int = 0) -> str:
        """Run a command in the home of the server."""
        done = run(self.home, *arguments)
        assert done.returncode == code, done.stderr
        return done.stdout


def run(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "weft", *arguments],
        env=environment(home),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def environment(home: Path) -> dict[str, str]:
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith("WEFT_") or "COV" in name
    }
    return {**kept, "WEFT_HOME": str(home), "BROWSER": BROWSER}


@contextmanager
def serving(
    home: Path, script: Sequence[Any] = (), *, command: tuple[str, ...] = ("serve",), http: str = ""
) -> Iterator[Server]:
    """Run `weft serve`, or another command that listens, with a model on loopback that follows a script."""
    home.mkdir(parents=True, exist_ok=True)
    (home / "config.toml").write_text(
        f'provider = "openai"\n[http]\nport = 0\nrequests_per_minute = 1000000\n{http}\n'
    )
    said = home / "said.txt"
    with LoopbackVendor("openai", script) as model, said.open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "weft", *command],
            env=environment(home) | model.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
        )
        try:
            yield Server(_address(said, process), home, said, model, process)
        finally:
            process.terminate()
            process.wait(_SECONDS)


def _address(said: Path, process: subprocess.Popen[bytes]) -> str:
    end = time.monotonic() + _SECONDS
    while time.monotonic() < end and process.poll() is None:
        found = re.search(r"(?:HTTP is open|the pages are) at (http://[^;\s]+)", said.read_text())
        if found:
            return found[1]
        time.sleep(0.05)
    raise AssertionError(f"The server did not start: {said.read_text()}")
