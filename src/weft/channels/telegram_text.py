"""Markdown as Telegram shows it: HTML with few tags, in messages of at most 4,096 UTF-16 units.

A long answer is cut between paragraphs, else between lines, sentences or words, and formatting goes on in the
next message. Telegram counts the units of the text without its tags.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

LIMIT = 4096
_TAGS = {"strong": "b", "em": "i", "s": "s"}
_GAP = "\n\n"
_parser = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])


class Run(NamedTuple):
    """Some text with its marks, the outermost first: a tag of Telegram's, `pre LANGUAGE` or `a URL`."""

    text: str
    marks: tuple[str, ...] = ()


def messages(markdown: str, limit: int = LIMIT) -> list[str]:
    """Render Markdown as HTML, one text per message."""
    reader = _Reader()
    reader.read(_parser.parse(markdown))
    return ["".join(map(_html, part)) for part in _split(reader.runs, limit)]


def plain_messages(text: str, limit: int = LIMIT) -> list[str]:
    """Cut a text as it is into messages, for when Telegram refuses the formatting."""
    return ["".join(run.text for run in part) for part in _split([Run(text)], limit)]


def units(text: str) -> int:
    """Return the length of a text for Telegram."""
    return len(text) + sum(character > "\uffff" for character in text)


class _Reader:
    """Writes the parser's tokens as runs, one method for each type of token.

    `lists` has the next number of each open list, `row` the cells of an open row of a table. A block that is
    `joined` follows the last one on the next line, others after a gap.
    """

    def __init__(self) -> None:
        self.runs: list[Run] = []
        self.lists: list[int | None] = []
        self.bullet = ""
        self.marks: list[str] = []
        self.row: list[Run] | None = None
        self.joined = False

    def read(self, tokens: Sequence[Token]) -> None:
        for token in tokens:
            method = getattr(self, f"_{token.type}", None)
            if method is not None:
                method(token)

    def _add(self, runs: Iterable[Run], *, joins: bool = False) -> None:
        block = list(runs)
        if self.lists:
            block.insert(0, Run("  " * (len(self.lists) - 1) + (self.bullet or "  ")))
            self.bullet = ""
        if any(run.text.strip() for run in block):
            self.runs += [Run("\n" if self.joined else _GAP), *block] if self.runs else block
            self.joined = joins or bool(self.lists)

    def _inline(self, token: Token) -> None:
        runs = _inline_runs(token.children or ())
        if self.row is not None:
            self.row += [*([Run(" | ")] if self.row else []), *runs]
        else:
            self._add(Run(run.text, (*self.marks, *run.marks)) for run in runs)

    def _tr_open(self, _: Token) -> None:
        self.row = []

    def _tr_close(self, _: Token) -> None:
        row, self.row = self.row or [], None
        self._add(row, joins=True)

    def _table_close(self, _: Token) -> None:
        self.joined = False

    def _heading_open(self, _: Token) -> None:
        self.marks.append("b")

    def _blockquote_open(self, _: Token) -> None:
        self.marks.append("blockquote")

    def _marks_close(self, _: Token) -> None:
        self.marks.pop()

    _heading_close = _blockquote_close = _marks_close

    def _bullet_list_open(self, _: Token) -> None:
        self.lists.append(None)

    def _ordered_list_open(self, token: Token) -> None:
        self.lists.append(int(token.attrs.get("start", 1)))

    def _list_item_open(self, _: Token) -> None:
        number = self.lists[-1]
        self.bullet = "• " if number is None else f"{number}. "
        if number is not None:
            self.lists[-1] = number + 1

    def _list_close(self, _: Token) -> None:
        self.lists.pop()
        self.joined = bool(self.lists)

    _bullet_list_close = _ordered_list_close = _list_close

    def _code_block(self, token: Token) -> None:
        language = token.info.split()[0] if token.info.split() else ""
        self._add([Run(token.content.rstrip("\n"), (f"pre {language}".strip(),))])

    _fence = _code_block

    def _hr(self, _: Token) -> None:
        self._add([Run("———")])


def _inline_runs(tokens: Iterable[Token]) -> Iterator[Run]:
    marks: list[str] = []
    for token in tokens:
        kind, _, end = token.type.rpartition("_")
        if token.type in ("softbreak", "hardbreak"):
            yield Run("\n", tuple(marks))
        elif token.type == "code_inline":
            yield Run(token.content, (*marks, "code"))
        elif token.type == "image":
            yield Run(token.content or str(token.attrs.get("src", "")), tuple(marks))
        elif end == "open":
            marks.append(_TAGS.get(kind) or f"a {token.attrs.get('href', '')}")
        elif end == "close" and marks:
            marks.pop()
        elif token.content:
            yield Run(token.content, tuple(marks))


def _split(runs: list[Run], limit: int) -> Iterator[list[Run]]:
    """Cut runs into parts that fit, each at the best place. A part without text is left out."""
    rest = runs
    while units(text := "".join(run.text for run in rest)) > limit:
        part, rest = _cut(rest, _best_end(text, limit))
        if any(run.text.strip() for run in part):
            yield part
    if text.strip():
        yield rest


def _best_end(text: str, limit: int) -> int:
    """Return where to cut: behind the last paragraph that fits, else line, sentence or word."""
    end, used = 0, 0
    while end < len(text) and used + units(text[end]) <= limit:
        used += units(text[end])
        end += 1
    for mark, start in ((_GAP, 1), ("\n", end // 2), (". ", end // 2), (" ", end // 2)):
        at = text.rfind(mark, start, end)
        if at >= 0:
            return at + len(mark)
    return max(end, 1)


def _cut(runs: list[Run], end: int) -> tuple[list[Run], list[Run]]:
    for at, run in enumerate(runs):
        if end < len(run.text):
            first, second = Run(run.text[:end], run.marks), Run(run.text[end:], run.marks)
            return [*runs[:at], first], [second, *runs[at + 1 :]]
        end -= len(run.text)
    return runs, []


def _html(run: Run) -> str:
    text = escape(run.text, quote=False)
    for mark in reversed(run.marks) if run.text else ():
        name, _, value = mark.partition(" ")
        if name == "a":
            text = f'<a href="{escape(value)}">{text}</a>' if value else text
        elif name == "pre" and value:
            text = f'<pre><code class="language-{escape(value)}">{text}</code></pre>'
        else:
            text = f"<{name}>{text}</{name}>"
    return text
