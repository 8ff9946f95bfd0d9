"""Markdown that grows on a screen: complete blocks are drawn, the rest stands below them as plain text."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.markup import escape
from rich.spinner import Spinner
from rich.text import Text

from weft.channels.terminal import drawn
from weft.types.escape import printable

_FRAME_SECONDS = 1 / 12
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")


def split_complete(text: str) -> tuple[str, str]:
    """Split Markdown into its complete blocks and the rest.

    A block ends at a blank line that is not inside a fenced one.
    """
    blocks = _Blocks()
    return blocks.add(text), blocks.rest


class _Blocks:
    """Markdown as it grows. Each line is scanned once, however long its block is."""

    def __init__(self) -> None:
        self.rest, self._seen, self._fence = "", 0, ""

    def add(self, text: str) -> str:
        """Add text, and return the blocks that are complete now. The others stay in `rest`."""
        self.rest += text
        end = 0
        while (line_end := self.rest.find("\n", self._seen) + 1) > 0:
            if self._is_blank(self.rest[self._seen : line_end]):
                end = line_end
            self._seen = line_end
        complete, self.rest = self.rest[:end], self.rest[end:]
        self._seen -= end
        return complete

    def take(self) -> str:
        """Return the rest, complete or not, and begin a new block."""
        rest = self.rest
        self.rest, self._seen, self._fence = "", 0, ""
        return rest

    def _is_blank(self, line: str) -> bool:
        match = _FENCE.match(line)
        if match and not self._fence:
            self._fence = match[1]
        elif match and match[1].startswith(self._fence) and not line.strip(" \n`~"):
            self._fence = ""
        return not match and not self._fence and not line.strip()


@dataclass(frozen=True, slots=True)
class LastLines:
    """The last lines of a text, wrapped for the screen: rich itself would show the first ones.

    They are wrapped when the screen is drawn, which is less often than text comes.
    """

    text: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width, lines = options.max_width, max(console.height - 4, 4)
        wrapped = Text(self.text[-lines * width :]).wrap(console, width)
        yield Text("\n").join(wrapped[-lines:])


class GrowingText:
    """Shows an answer while it comes. A pipe gets the plain text, without marks of ours.

    The screen is drawn by the event loop alone: rich's own thread would draw between two lines of ours, and
    leave behind what it drew.
    """

    def __init__(self, out: Console) -> None:
        self._out, self._blocks, self._wrote, self._drew = out, _Blocks(), False, False
        self._live: Live | None = None
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> Self:
        if self._out.is_terminal:
            self._start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()
        self._flush(self._blocks.take())
        if self._wrote and not self._out.is_terminal:
            self._out.file.write("\n")
            self._out.file.flush()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Leave the screen to a prompt; the answer so far stands above it."""
        self._stop()
        self._flush(self._blocks.take())
        try:
            yield
        finally:
            if self._live is not None:
                self._start()

    def wait(self, what: str) -> None:
        """Show a spinner with a note while there is no text."""
        if self._live is not None and not self._blocks.rest:
            self._live.update(Spinner("dots", Text(what, style="dim")))

    def add(self, text: str) -> None:
        self._wrote = True
        if self._live is None:
            self._out.file.write(text)
            self._out.file.flush()
            return
        complete = self._blocks.add(printable(text))
        self._live.update(LastLines(self._blocks.rest), refresh=bool(complete))
        self._flush(complete)

    def line(self, text: str, *, mark: str) -> None:
        """Print a line of ours between pieces of the answer. A pipe does not get it."""
        if self._live is None:
            return
        rest = self._blocks.take()
        self._live.update(Text(""), refresh=True)
        self._flush(rest)
        self._drew = False
        self._live.console.print(f"[dim]{mark} {escape(printable(text))}[/]", soft_wrap=False)
        self.wait("thinking")

    def _start(self) -> None:
        is_seen = (
            sys.stderr.isatty()
        )  # a file gets what is written to stderr, a screen gets it above the answer
        self._live = Live(console=self._out, transient=True, auto_refresh=False, redirect_stderr=is_seen)
        self._live.start()
        self.wait("thinking")
        self._tick()

    def _tick(self) -> None:
        if self._live is not None:
            self._live.refresh()
            with suppress(RuntimeError):  # no loop runs, so nothing moves
                self._timer = asyncio.get_running_loop().call_later(_FRAME_SECONDS, self._tick)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._live is not None:
            self._live.update(Text(""))
            self._live.stop()

    def _flush(self, text: str) -> None:
        if self._out.is_terminal and text.strip():
            if self._drew:
                self._out.print()
            self._drew = True
            self._out.print(drawn(text))
