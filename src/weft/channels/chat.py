"""A conversation in the terminal: one message after the other, until the person leaves.

Ctrl-C stops an answer and keeps the session; Ctrl-D leaves.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Sequence
from contextlib import aclosing, nullcontext, suppress
from typing import Any, Protocol

from rich.console import Console
from rich.markup import escape

from weft.channels.live_markdown import GrowingText, drawn
from weft.errors import WeftError
from weft.types.escape import printable
from weft.types.message import ToolCall
from weft.types.reply import Event, Reading, TextDelta, ToolFinished, ToolStarted

LEAVE = frozenset({"/quit", "/exit"})
_SHOWN = 100
_CHUNK_BYTES = 65_536


class Talk(Protocol):
    """The other side: what is said to it is answered, and commands are carried out."""

    def is_command(self, text: str) -> bool: ...

    def say(self, text: str) -> AsyncGenerator[Event]: ...

    async def command(self, text: str) -> str: ...

    async def news(self) -> Sequence[str]:
        """What is to be told unasked: reminders that are due."""
        ...


class TerminalConsent:
    """Asks the person at the terminal to agree, in the middle of an answer."""

    def __init__(self, out: Console) -> None:
        self._out, self._one = out, asyncio.Lock()
        self.growing: GrowingText | None = None

    async def ask(self, question: str) -> bool:
        """Whether they type yes; whoever leaves does not."""
        async with self._one:
            with self.growing.paused() if self.growing else nullcontext():
                show(question, self._out)
                try:  # Ctrl-C stops the answer, and with it the question
                    answer: str = await _prompt(()).prompt_async("yes or no › ", handle_sigint=False)
                except (KeyboardInterrupt, EOFError):
                    return False
        return answer.strip().lower() in ("y", "yes", "/yes")


async def chat(
    talk: Talk, lines: AsyncIterator[str], out: Console, err: Console, consent: TerminalConsent | None = None
) -> int:
    """Answer every line that comes, until there are no more. How many could not be answered."""
    failed = 0
    await _tell(talk, out, err)
    async for line in lines:
        text = line.strip()
        if text in LEAVE:
            break
        if not text:
            continue
        try:
            if talk.is_command(text):
                show(await talk.command(text), out)
            else:
                await _stoppable(_answered(talk, text, out, consent), out)
        except WeftError as error:
            failed += 1
            sentence = escape(printable(str(error)))
            if out.is_terminal:
                out.print(f"[red]{sentence}[/]")
            else:
                err.print(f"weft: {sentence}", soft_wrap=True)
        await _tell(talk, out, err)
    return failed


async def _tell(talk: Talk, out: Console, err: Console) -> None:
    """What is to be told unasked; a program that reads a pipe gets it apart from the answers."""
    for text in await talk.news():
        show(text, out if out.is_terminal else err)


def show(text: str, out: Console) -> None:
    """Markdown, drawn for a person and plain for a program."""
    if out.is_terminal:
        out.print(drawn(text))
    else:
        out.file.write(f"{text}\n")


async def _answered(talk: Talk, text: str, out: Console, consent: TerminalConsent | None) -> None:
    with GrowingText(out) as growing:
        if consent is not None:
            consent.growing = growing
        async with aclosing(talk.say(text)) as events:
            async for event in events:
                match event:
                    case Reading(done, total):
                        growing.wait(f"reading {done:,} of {total:,} tokens")
                    case TextDelta(more):
                        growing.add(more)
                    case ToolStarted(call):
                        growing.line(f"{call.name} {_arguments(call)}", mark="→")
                    case ToolFinished(call, result, failed):
                        growing.line(f"{call.name}: {_start(result)}", mark="✗" if failed else "✓")


async def _stoppable(work: Awaitable[None], out: Console) -> None:
    """Do the work; Ctrl-C ends it, and nothing else."""
    loop, task, whole = asyncio.get_running_loop(), asyncio.ensure_future(work), asyncio.current_task()
    loop.add_signal_handler(signal.SIGINT, task.cancel)
    try:
        await task
    except asyncio.CancelledError:
        if whole is not None and whole.cancelling():
            raise  # not this answer alone: the conversation itself is to end
        out.print("[dim]stopped[/]")
    finally:
        loop.remove_signal_handler(signal.SIGINT)


def _arguments(call: ToolCall) -> str:
    return _start(json.dumps(dict(call.arguments), ensure_ascii=False, default=str))


def _start(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _SHOWN else f"{flat[:_SHOWN]}…"


async def piped_lines() -> AsyncIterator[str]:
    """The lines of standard input, for a program that talks to us; what is not UTF-8 is replaced."""
    rest = b""
    while chunk := await _read(sys.stdin.fileno()):
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line.decode("utf-8", "replace")
    yield rest.decode("utf-8", "replace")


async def _read(handle: int) -> bytes:
    """What comes next, from a thread that nobody waits for: reading cannot be interrupted, but we can."""
    loop = asyncio.get_running_loop()
    read: asyncio.Future[bytes] = loop.create_future()

    def give(chunk: bytes) -> None:
        if not read.done():
            read.set_result(chunk)

    def work() -> None:
        chunk = b""
        with suppress(OSError):  # a terminal that was closed
            chunk = os.read(handle, _CHUNK_BYTES)
        with suppress(RuntimeError):  # the loop is gone
            loop.call_soon_threadsafe(give, chunk)

    threading.Thread(target=work, daemon=True).start()
    return await read


async def typed_lines(said: Sequence[str], out: Console) -> AsyncIterator[str]:
    """What a person types: with editing, several lines, and what was said before at the arrow keys."""
    session = _prompt(said)
    out.print("[dim]Enter sends, Alt-Enter begins a new line, Ctrl-C stops an answer, Ctrl-D leaves.[/]")
    while True:
        try:
            yield await session.prompt_async("› ")
        except KeyboardInterrupt:
            continue
        except EOFError:
            return


def _prompt(said: Sequence[str]) -> Any:
    from prompt_toolkit import PromptSession  # noqa: PLC0415 - only who types needs an editor
    from prompt_toolkit.history import InMemoryHistory  # noqa: PLC0415
    from prompt_toolkit.key_binding import KeyBindings  # noqa: PLC0415

    keys = KeyBindings()

    @keys.add("escape", "enter")
    def new_line(event: Any) -> None:
        event.current_buffer.insert_text("\n")

    history = InMemoryHistory(list(said))
    return PromptSession(history=history, key_bindings=keys, prompt_continuation="  ")
