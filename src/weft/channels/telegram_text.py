"""Markdown as Telegram shows it: HTML with few tags, in messages of at most 4,096 UTF-16 units.

A long answer is cut between paragraphs, else between lines, sentences or words, and formatting goes on in the
next message. Units are those of what is read, without tags, as Telegram counts them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

LIMIT = 4096
_MARKS = {"strong": "b", "em": "i", "s": "s"}
_GAP = "\n\n"
_parser = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])


class Run(NamedTuple):
    """Some text with its marks, the outermost first: `b`, `i`, `s`, `code`, `pre`, or a link."""

    text: str
    marks: tuple[str, ...] = ()


Block = tuple[Run, ...]


def messages(markdown: str, limit: int = LIMIT) -> list[str]:
    """The text as HTML, a message each."""
    return [_html(message) for message in _packed(blocks(markdown), limit)]


def plain_messages(text: str, limit: int = LIMIT) -> list[str]:
    """The text as it is, a message each: for when the formatting was not taken."""
    return ["".join(run.text for run in message) for message in _packed([(Run(text),)], limit)]


def units(text: str) -> int:
    """How long a text is for Telegram."""
    return len(text) + sum(character > "\uffff" for character in text)


# --- from Markdown to blocks


@dataclass(slots=True)
class _Reader:
    """Reads the parser's tokens. `lists` has the next number of each list that is open, `row` the cells of a
    table's row."""

    found: list[Block] = field(default_factory=list)
    lists: list[int | None] = field(default_factory=list)
    bullet: str = ""
    quoted: int = 0
    heading: bool = False
    row: list[Run] | None = None

    def read(self, tokens: Sequence[Token]) -> None:
        for token in tokens:
            method = getattr(self, f"_{token.type}", None)
            if method is not None:
                method(token)

    def _inline(self, token: Token) -> None:
        runs = list(_inline_runs(token.children or ()))
        if self.row is not None:
            self.row += [*([Run(" | ")] if self.row else []), *runs]
            return
        if self.heading:
            runs = [Run(run.text, ("b", *run.marks)) for run in runs]
        if self.quoted:
            runs = [Run(run.text, ("blockquote", *run.marks)) for run in runs]
        self._add(runs)

    def _add(self, runs: list[Run]) -> None:
        if self.lists:
            runs.insert(0, Run("  " * (len(self.lists) - 1) + (self.bullet or "  ")))
            self.bullet = ""
            if self.found and self.found[-1] and self.found[-1][-1].marks == ("item",):
                runs = [*self.found.pop()[:-1], Run("\n"), *runs]
            runs.append(Run("", ("item",)))
        self.found.append(tuple(runs))

    def _tr_open(self, _: Token) -> None:
        self.row = []

    def _tr_close(self, _: Token) -> None:
        """Rows of one table stand below each other, in one block."""
        row, self.row = self.row or [], None
        if self.found and self.found[-1] and self.found[-1][-1].marks == ("row",):
            row = [*self.found.pop()[:-1], Run("\n"), *row]
        self.found.append((*row, Run("", ("row",))))

    def _table_close(self, _: Token) -> None:
        self.found[-1] = self.found[-1][:-1]

    def _heading_open(self, _: Token) -> None:
        self.heading = True

    def _heading_close(self, _: Token) -> None:
        self.heading = False

    def _blockquote_open(self, _: Token) -> None:
        self.quoted += 1

    def _blockquote_close(self, _: Token) -> None:
        self.quoted -= 1

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
        if not self.lists and self.found:
            self.found[-1] = tuple(run for run in self.found[-1] if run.marks != ("item",))

    _bullet_list_close = _list_close
    _ordered_list_close = _list_close

    def _code_block(self, token: Token) -> None:
        language = token.info.split()[0] if token.info.split() else ""
        self._add([Run(token.content.rstrip("\n"), (f"pre {language}".strip(),))])

    _fence = _code_block

    def _hr(self, _: Token) -> None:
        self.found.append((Run("———"),))


def blocks(markdown: str) -> list[Block]:
    """The paragraphs, lists and pieces of code of a text."""
    reader = _Reader()
    reader.read(_parser.parse(markdown))
    return [block for block in reader.found if any(run.text.strip() for run in block)]


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
            marks.append(_MARKS.get(kind) or f"a {token.attrs.get('href', '')}")
        elif end == "close" and marks:
            marks.pop()
        elif token.content:
            yield Run(token.content, tuple(marks))


# --- from blocks to messages


def _packed(found: Iterable[Block], limit: int) -> Iterator[Block]:
    """Blocks together in as few messages as they fit in, in their order."""
    current: list[Run] = []
    room = limit
    for block in found:
        size = sum(units(run.text) for run in block)
        if current and size + len(_GAP) > room:
            yield tuple(current)
            current, room = [], limit
        if current:
            current.append(Run(_GAP))
            room -= len(_GAP)
        *whole, last = _split(block, limit)
        yield from whole
        current += last
        room -= sum(units(run.text) for run in last)
    if any(run.text.strip() for run in current):
        yield tuple(current)


def _split(block: Block, limit: int) -> list[Block]:
    """A block in parts that fit, each cut at the best place."""
    parts: list[Block] = []
    rest = block
    while sum(units(run.text) for run in rest) > limit:
        text = "".join(run.text for run in rest)
        end = _best_end(text, limit)
        first, rest = _cut(rest, end)
        parts.append(first)
    return [*parts, rest]


def _best_end(text: str, limit: int) -> int:
    """Where to cut: behind the last line, sentence or word that fits, if that leaves at least half of it."""
    end, used = 0, 0
    while end < len(text) and used + units(text[end]) <= limit:
        used += units(text[end])
        end += 1
    for mark in (_GAP, "\n", ". ", " "):
        at = text.rfind(mark, end // 2, end)
        if at >= 0:
            return at + len(mark)
    return max(end, 1)


def _cut(block: Block, end: int) -> tuple[Block, Block]:
    first: list[Run] = []
    for at, run in enumerate(block):
        if end < len(run.text):
            return (*first, Run(run.text[:end], run.marks)), (
                Run(run.text[end:], run.marks),
                *block[at + 1 :],
            )
        first.append(run)
        end -= len(run.text)
    return tuple(first), ()


def _html(block: Block) -> str:
    return "".join(_written(run) for run in block)


def _written(run: Run) -> str:
    text = escape(run.text, quote=False)
    for mark in reversed(run.marks):
        name, _, value = mark.partition(" ")
        if name == "a":
            text = f'<a href="{escape(value)}">{text}</a>' if value else text
        elif name == "pre" and value:
            text = f'<pre><code class="language-{escape(value)}">{text}</code></pre>'
        elif name not in ("item", "row"):
            text = f"<{name}>{text}</{name}>"
    return text
