"""Text that grows on a screen: what is complete is drawn as Markdown, the rest stands below it as it is."""

from __future__ import annotations

import re
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

from weft.types.neutral import printable

_ENTITY = re.compile(r"&#\w{1,8};")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")


def split_complete(text: str) -> tuple[str, str]:
    """The blocks of Markdown that are complete, and the rest.

    A block ends at a blank line that is not inside a fenced one.
    """
    fence, end, at = "", 0, 0
    for line in text.splitlines(keepends=True):
        at += len(line)
        match = _FENCE.match(line)
        if match and not fence:
            fence = match[1]
        elif match and match[1].startswith(fence) and not line.strip(" \n`~"):
            fence = ""
        elif not fence and not line.strip() and line.endswith("\n"):
            end = at
    return text[:end], text[end:]


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
        self._out, self._rest, self._wrote, self._drew = out, "", False, False
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
        self._flush(self._rest)
        if self._wrote and not self._out.is_terminal:
            self._out.file.write("\n")
            self._out.file.flush()

    def wait(self, what: str) -> None:
        """Say what is going on while there is no text."""
        if self._live is not None and not self._rest:
            self._live.update(Spinner("dots", Text(what, style="dim")))

    def add(self, text: str) -> None:
        self._wrote = True
        if self._live is None:
            self._out.file.write(text)
            self._out.file.flush()
            return
        self._rest += printable(text)
        if "\n" in text:  # nothing else completes a block, and long ones are not looked through for each word
            complete, self._rest = split_complete(self._rest)
            self._flush(complete)
        self._live.update(LastLines(self._rest))

    def line(self, text: str, *, mark: str) -> None:
        """A line of ours between pieces of the answer. A program that reads a pipe does not get it."""
        if self._live is None:
            return
        self._flush(self._rest)
        self._rest, self._drew = "", False
        self._live.console.print(f"[dim]{mark} {escape(printable(text))}[/]", soft_wrap=False)
        self.wait("thinking")

    def _flush(self, text: str) -> None:
        if self._out.is_terminal and text.strip():
            if self._drew:
                self._out.print()
            self._drew = True
            self._out.print(drawn(text))
