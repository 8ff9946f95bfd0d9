"""The terminal: answers as they come, and the receipt as bars."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from html import unescape
from typing import TYPE_CHECKING, Self

from rich.console import Console, RenderableType
from rich.markup import escape
from rich.text import Text

from weft.types.escape import one_line, printable
from weft.types.receipt import MOST_NAMED, LeftOut, Receipt
from weft.types.reply import Done, Event, Reading, Reply, TextDelta, ToolStarted

if TYPE_CHECKING:
    from rich.progress import Progress
    from rich.table import Table

LAYER_COLOURS = {
    "tools": "bright_black",
    "instructions": "blue",
    "blocks": "magenta",
    "facts": "bright_magenta",
    "skills": "cyan",
    "tool_docs": "bright_cyan",
    "tool_rules": "bright_blue",
    "summaries": "yellow",
    "history": "green",
    "bootstrap": "bright_yellow",
    "memory_file": "red",
    "recall": "bright_red",
    "tasks": "bright_green",
    "activity": "white",
    "message": "bright_white",
    "framing": "bright_black",
    "standing": "bright_magenta",
    "changes": "bright_cyan",
    "steps": "cyan",
}
_ENTITY = re.compile(r"&#\w{1,8};")
_BAR_WIDTH = 28
_NARROW = 80
"""Below this width a receipt has no bars, so that its numbers and names have room."""


class _Bar:
    """A bar on stderr that says what the person waits for. Nothing is shown where nobody looks."""

    def __init__(self, waiting: str, err: Console) -> None:
        self._progress: Progress | None = None
        if err.is_interactive:
            from rich.progress import BarColumn, Progress, TextColumn  # noqa: PLC0415 - 8 ms that pipes need not spend

            columns = (TextColumn("[dim]{task.description}"), BarColumn(bar_width=30))
            self._progress = Progress(*columns, console=err, transient=True)
            self._task = self._progress.add_task(escape(printable(waiting)), total=None)

    def __enter__(self) -> Self:
        if self._progress:
            self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def update(self, done: int, total: int) -> None:
        """Show how many tokens the model has read."""
        if self._progress:
            what = f"reading {done:,} of {total:,} tokens"
            self._progress.update(self._task, description=what, completed=done, total=total)

    def stop(self) -> None:
        """Take the bar away."""
        if self._progress:
            self._progress.stop()


async def show_answer(
    events: AsyncGenerator[Event], out: Console, err: Console, *, waiting: str
) -> Reply | None:
    """Write the answer as it comes. A bar on stderr says what is `waiting`, and how far the model has read.

    If nobody reads the output any more, the model is stopped too.
    """
    reply: Reply | None = None
    async with aclosing(events):
        with _Bar(waiting, err) as bar:
            async for event in events:
                match event:
                    case Reading(done, total):
                        bar.update(done, total)
                    case ToolStarted():
                        bar.stop()  # the tool may ask the person something
                    case TextDelta(text):
                        bar.stop()
                        out.file.write(printable(text) if out.is_terminal else text)
                        out.file.flush()
                    case Done(reply):
                        bar.stop()
                        if reply.text.strip() and not reply.text.endswith("\n"):
                            out.file.write("\n")  # now, before a line of the log ends the turn
                        out.file.flush()
    if reply is not None and not reply.text.strip():
        err.print("weft: The model gave an empty answer: ask again, or choose another model.", soft_wrap=True)
    if reply is not None and reply.notice:
        show_notice(reply.notice, err)
    return reply


def drawn(text: str) -> RenderableType:
    """Render Markdown for a screen.

    Control characters written as entities (`&#x202e;`) have no effect. Links show their address, since the
    words of a link may name another one.
    """
    from rich.markdown import Markdown  # noqa: PLC0415 - 30 ms for `markdown_it`, which no pipe needs

    return Markdown(_ENTITY.sub(_harmless, printable(text)), hyperlinks=False)


def _harmless(entity: re.Match[str]) -> str:
    character = unescape(entity[0])
    safe = printable(character)
    return entity[0] if safe == character else safe


def show(text: str, out: Console) -> None:
    """Print Markdown: drawn for a person, plain for a program."""
    if out.is_terminal:
        out.print(drawn(text))
    else:
        out.file.write(f"{text}\n")


def show_notice(text: str, out: Console) -> None:
    """Print a quiet line beside an answer."""
    out.print(f"[dim]{escape(printable(text))}[/]", soft_wrap=True)


def show_receipt(receipt: Receipt, out: Console, *, most: int | None = MOST_NAMED) -> None:
    """Print a receipt: a bar per layer, what was left out and why, and who was asked.

    Of what was left out, at most so many items of one layer are named for each reason; without a number, all.
    """
    out.print(_headline(receipt))
    out.print(_layers(receipt, out.width), no_wrap=True, overflow="ignore")
    if receipt.dropped:
        out.print(_dropped(receipt.left_out(most)))
    for error in receipt.errors:
        out.print(f"[bold red]![/] [red]{escape(printable(error))}[/]", soft_wrap=True)
    for warning in receipt.warnings:
        out.print(f"[yellow]![/] [dim]{escape(printable(warning))}[/]", soft_wrap=True)
    for line in receipt.remarks:
        out.print(f"[dim]{escape(printable(line))}[/]", soft_wrap=True)
    if receipt.provider:
        model = f" ({receipt.model})" if receipt.model else ""
        asked = "asked" if receipt.usage else "would ask"
        place = f" at {receipt.address}" if receipt.address else ""
        line = f"{asked} {receipt.provider}{model}{place}: {receipt.provider_reason}"
        out.print(f"[dim]{escape(printable(line))}[/]", soft_wrap=True)
    if usage := receipt.usage:
        cache = f"{usage.cached_tokens} from its cache"
        cache += f", {usage.written_tokens} new in it" if usage.written_tokens else ""
        line = f"it read {usage.input_tokens} of its own tokens ({cache}) "
        out.print(f"[dim]{line}and wrote {usage.output_tokens}[/]", soft_wrap=True)


def _headline(receipt: Receipt) -> Text:
    share = receipt.total_tokens / receipt.limit if receipt.limit else 0
    line = Text.assemble(
        ("receipt ", "bold"),
        f"{receipt.total_tokens:,} of {receipt.limit:,} tokens ({share:.0%}), recipe {receipt.recipe}",
    )
    if receipt.over_limit:
        line.append("  OVER THE LIMIT", style="bold red")
    return line


def _layers(receipt: Receipt, width: int) -> Text:
    """Make one line per layer: a bar of its share of the limit where there is room, its tokens, its titles.

    The numbers are always there; a name or a list of titles that has no room ends with an ellipsis.
    """
    by_layer = receipt.by_layer
    number_width = max((len(f"{tokens:,}") for tokens in by_layer.values()), default=0)
    name_width = min(max(map(len, by_layer), default=0), width - number_width - 1)
    lines = []
    for layer, tokens in by_layer.items():
        name = Text(printable(layer), style=LAYER_COLOURS.get(layer, "white"))
        name.truncate(name_width, overflow="ellipsis", pad=True)
        bar = _bar(tokens, receipt.limit, layer) if width >= _NARROW else ""
        line = Text.assemble(name, " ", bar, f"{tokens:>{number_width},}")
        titles = Text(printable(one_line(receipt.titles(layer))), style="dim")
        room = width - line.cell_len - 1
        if titles and room > 1:
            titles.truncate(room, overflow="ellipsis")
            line = Text.assemble(line, " ", titles)
        lines.append(line)
    return Text("\n").join(lines)


def _bar(tokens: int, limit: int, layer: str) -> Text:
    filled = min(round(tokens / (limit or tokens or 1) * _BAR_WIDTH), _BAR_WIDTH)
    style = LAYER_COLOURS.get(layer, "white")
    return Text("█" * filled, style=style) + Text(f"{'░' * (_BAR_WIDTH - filled)} ", style="dim")


def _dropped(groups: Sequence[LeftOut]) -> Table:
    from rich.table import Table  # noqa: PLC0415 - pipes show no receipt

    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1, 0, 0))
    for is_number in (False, True, False):
        table.add_column(no_wrap=is_number, justify="right" if is_number else "left")
    for group in groups:
        reason = Text(printable(group.reason), style="dim")
        for item in group.items:
            what = Text.assemble(("left out ", "red"), printable(f"{item.layer}: {item.title}"))
            table.add_row(what, f"{item.tokens:,}", reason)
        if group.more:
            table.add_row(Text(printable(group.rest)), f"{group.more_tokens:,}", reason)
    return table
