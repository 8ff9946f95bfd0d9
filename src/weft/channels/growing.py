"""Text that grows on a screen: what is complete is drawn as Markdown, the rest stands below it as it is."""

from __future__ import annotations

import re
from html import unescape
from types import TracebackType
from typing import Self

from rich.console import Console
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
        complete, self._rest = split_complete(self._rest + printable(text))
        self._flush(complete)
        self._live.update(self._end(max(self._out.height - 4, 4)))

    def _end(self, lines: int) -> Text:
        """The last lines of the rest, as the screen breaks them: of more than fits it shows the start."""
        width = self._out.width
        wrapped = Text(self._rest[-lines * width :]).wrap(self._out, width)
        return Text("\n").join(wrapped[-lines:])

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
