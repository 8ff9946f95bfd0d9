"""Text that grows on a screen: what is complete is drawn as Markdown, the rest stands below it as it is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html import unescape
from types import TracebackType
from typing import Self

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.markdown import Markdown
from rich.markup import escape
from rich.spinner import Spinner
from rich.text import Text

from weft.types.escape import printable

_ENTITY = re.compile(r"&#\w{1,8};")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")


def split_complete(text: str) -> tuple[str, str]:
    """The blocks of Markdown that are complete, and the rest.

    A block ends at a blank line that is not inside a fenced one.
    """
    blocks = _Blocks()
    return blocks.add(text), blocks.rest


class _Blocks:
    """Markdown as it grows. A line is looked at once, however long the block is that it stands in."""

    def __init__(self) -> None:
        self.rest, self._seen, self._fence = "", 0, ""

    def add(self, text: str) -> str:
        """The blocks that are complete with this text; what is not yet is in `rest`."""
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
        """All that is left, complete or not; what comes next begins a block."""
        taken = self.rest
        self.rest, self._seen, self._fence = "", 0, ""
        return taken

    def _is_blank(self, line: str) -> bool:
        match = _FENCE.match(line)
        if match and not self._fence:
            self._fence = match[1]
        elif match and match[1].startswith(self._fence) and not line.strip(" \n`~"):
            self._fence = ""
        return not match and not self._fence and not line.strip()


def drawn(text: str) -> Markdown:
    """Markdown for a screen. It draws no control character that was written as an entity (`&#x202e;`), and
    a link with its address, since the words of a link may name another one."""
    return Markdown(_ENTITY.sub(_harmless, printable(text)), hyperlinks=False)


def _harmless(entity: re.Match[str]) -> str:
    character = unescape(entity[0])
    shown = printable(character)
    return entity[0] if shown == character else shown


@dataclass(frozen=True, slots=True)
class LastLines:
    """The last lines of a text, as the screen breaks them: of a text that does not fit it shows the start.

    They are looked for when the screen is drawn, which is less often than text comes.
    """

    text: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width, lines = options.max_width, max(console.height - 4, 4)
        wrapped = Text(self.text[-lines * width :]).wrap(console, width)
        yield Text("\n").join(wrapped[-lines:])


class GrowingText:
    """Shows an answer while it comes. Into a pipe it goes as it is, without marks of ours."""

    def __init__(self, out: Console) -> None:
        self._out, self._blocks, self._wrote, self._drew = out, _Blocks(), False, False
        self._live: Live | None = None

    def __enter__(self) -> Self:
        if self._out.is_terminal:
            self._live = Live(console=self._out, transient=True, refresh_per_second=12)
            self._live.start()
            self.wait("thinking")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.update(Text(""))
            self._live.stop()
        self._flush(self._blocks.take())
        if self._wrote and not self._out.is_terminal:
            self._out.file.write("\n")
            self._out.file.flush()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Leave the screen to somebody else; what was said so far stands above."""
        self._flush(self._blocks.take())
        if self._live is None:
            yield
            return
        self._live.update(Text(""))
        self._live.stop()
        try:
            yield
        finally:
            self._live = Live(console=self._out, transient=True, refresh_per_second=12)
            self._live.start()
            self.wait("thinking")

    def wait(self, what: str) -> None:
        """Say what is going on while there is no text."""
        if self._live is not None and not self._blocks.rest:
            self._live.update(Spinner("dots", Text(what, style="dim")))

    def add(self, text: str) -> None:
        self._wrote = True
        if self._live is None:
            self._out.file.write(text)
            self._out.file.flush()
            return
        self._flush(self._blocks.add(printable(text)))
        self._live.update(LastLines(self._blocks.rest))

    def line(self, text: str, *, mark: str) -> None:
        """A line of ours between pieces of the answer. A program that reads a pipe does not get it."""
        if self._live is None:
            return
        self._flush(self._blocks.take())
        self._drew = False
        self._live.console.print(f"[dim]{mark} {escape(printable(text))}[/]", soft_wrap=False)
        self.wait("thinking")

    def _flush(self, text: str) -> None:
        if self._out.is_terminal and text.strip():
            if self._drew:
                self._out.print()
            self._drew = True
            self._out.print(drawn(text))
