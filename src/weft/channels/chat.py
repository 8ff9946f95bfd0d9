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
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import aclosing, nullcontext, suppress
from dataclasses import replace
from typing import Any

from rich.console import Console
from rich.markup import escape

from weft.channels.live_markdown import GrowingText, drawn
from weft.channels.terminal import show_notice
from weft.errors import WeftError
from weft.gateway.assistant import Assistant
from weft.gateway.background import take_reminders
from weft.types.escape import printable
from weft.types.message import ToolCall
from weft.types.reply import Done, Event, Reading, TextDelta, ToolFinished, ToolStarted
from weft.types.request import TurnRequest

LEAVE = frozenset({"/quit", "/exit"})
LEAVE_HELP = "\n- `/quit` leaves; so does Ctrl-D."
_SHOWN = 100
_CHUNK_BYTES = 65_536


class TerminalConsent:
    """Asks the person at the terminal for consent, in the middle of an answer."""

    def __init__(self, out: Console) -> None:
        self._out, self._one = out, asyncio.Lock()
        self.growing: GrowingText | None = None

    async def ask(self, question: str) -> bool:
        """Ask, and return whether they type yes. Ctrl-D counts as no."""
        async with self._one:
            with self.growing.paused() if self.growing else nullcontext():
                show(question, self._out)
                try:  # Ctrl-C stops the answer and its question
                    answer: str = await _prompt(()).prompt_async("yes or no › ", handle_sigint=False)
                except (KeyboardInterrupt, EOFError):
                    return False
        return answer.strip().lower() in ("y", "yes", "/yes")


class Chat:
    """One conversation at a terminal, or with a program at the other end of a pipe."""

    def __init__(
        self,
        assistant: Assistant,
        request: TurnRequest,
        out: Console,
        err: Console,
        consent: TerminalConsent | None = None,
    ) -> None:
        self._assistant, self._request = assistant, request
        self._out, self._err, self._consent = out, err, consent

    async def run(self, lines: AsyncIterator[str]) -> int:
        """Answer every line until there are no more. Returns how many could not be answered."""
        failed = 0
        await self._remind()
        async for line in lines:
            text = line.strip()
            if text in LEAVE:
                break
            if not text:
                continue
            try:
                await _stoppable(self._answer(text), self._out)
            except WeftError as error:
                failed += 1
                self._complain(str(error))
            await self._remind()
        return failed

    async def _answer(self, text: str) -> None:
        """Send a message and show its answer as it comes; go on in the session of that answer."""
        notice = ""
        with GrowingText(self._out) as growing:
            if self._consent is not None:
                self._consent.growing = growing
            async with aclosing(self._assistant.handle(replace(self._request, text=text))) as events:
                async for event in events:
                    if isinstance(event, Done):
                        self._request = replace(self._request, session=event.reply.session_id)
                        notice = event.reply.notice
                    _show_event(event, growing)
            if text.lower() == "/help":
                growing.add(LEAVE_HELP)
        if notice:
            show_notice(notice, self._out if self._out.is_terminal else self._err)

    def _complain(self, error: str) -> None:
        sentence = escape(printable(error))
        if self._out.is_terminal:
            self._out.print(f"[red]{sentence}[/]")
        else:
            self._err.print(f"weft: {sentence}", soft_wrap=True)

    async def _remind(self) -> None:
        """Show the reminders that are due. A program that reads a pipe gets them apart from the answers."""
        store = await self._assistant.store.get()
        for text in await take_reminders(store, self._request.caller.channel):
            show(text, self._out if self._out.is_terminal else self._err)


def _show_event(event: Event, growing: GrowingText) -> None:
    match event:
        case Reading(done, total):
            growing.wait(f"reading {done:,} of {total:,} tokens")
        case TextDelta(more):
            growing.add(more)
        case ToolStarted(call):
            growing.line(f"{call.name} {_arguments(call)}", mark="→")
        case ToolFinished(call, result, failed):
            growing.line(f"{call.name}: {_start(result)}", mark="✗" if failed else "✓")


def show(text: str, out: Console) -> None:
    """Print Markdown: drawn for a person, plain for a program."""
    if out.is_terminal:
        out.print(drawn(text))
    else:
        out.file.write(f"{text}\n")


async def _stoppable(work: Awaitable[None], out: Console) -> None:
    """Do some work that Ctrl-C cancels, and nothing else."""
    loop, task, whole = asyncio.get_running_loop(), asyncio.ensure_future(work), asyncio.current_task()
    loop.add_signal_handler(signal.SIGINT, task.cancel)
    try:
        await task
    except asyncio.CancelledError:
        if whole is not None and whole.cancelling():
            raise  # the conversation itself is cancelled
        out.print("[dim]stopped[/]")
    finally:
        loop.remove_signal_handler(signal.SIGINT)


def _arguments(call: ToolCall) -> str:
    return _start(json.dumps(dict(call.arguments), ensure_ascii=False, default=str))


def _start(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _SHOWN else f"{flat[:_SHOWN]}…"


async def piped_lines() -> AsyncIterator[str]:
    """Yield the lines of standard input. What is not UTF-8 is replaced."""
    rest = b""
    while chunk := await _read(sys.stdin.fileno()):
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line.decode("utf-8", "replace")
    yield rest.decode("utf-8", "replace")


async def _read(handle: int) -> bytes:
    """Read the next bytes in a thread that nobody waits for, since a read cannot be interrupted."""
    loop = asyncio.get_running_loop()
    read: asyncio.Future[bytes] = loop.create_future()

    def resolve(chunk: bytes) -> None:
        if not read.done():
            read.set_result(chunk)

    def work() -> None:
        chunk = b""
        with suppress(OSError):  # a terminal that was closed
            chunk = os.read(handle, _CHUNK_BYTES)
        with suppress(RuntimeError):  # the loop is gone
            loop.call_soon_threadsafe(resolve, chunk)

    threading.Thread(target=work, daemon=True).start()
    return await read


async def typed_lines(history: Sequence[str], out: Console) -> AsyncIterator[str]:
    """Yield what a person types, with line editing, several lines, and their history at the arrow keys."""
    session = _prompt(history)
    out.print("[dim]Enter sends, Alt-Enter begins a new line, Ctrl-C stops an answer, Ctrl-D leaves.[/]")
    while True:
        try:
            yield await session.prompt_async("› ")
        except KeyboardInterrupt:
            continue
        except EOFError:
            return


def _prompt(lines: Sequence[str]) -> Any:
    from prompt_toolkit import PromptSession  # noqa: PLC0415 - only a person who types needs an editor
    from prompt_toolkit.history import InMemoryHistory  # noqa: PLC0415
    from prompt_toolkit.key_binding import KeyBindings  # noqa: PLC0415

    keys = KeyBindings()

    @keys.add("escape", "enter")
    def new_line(event: Any) -> None:
        event.current_buffer.insert_text("\n")

    history = InMemoryHistory(list(lines))
    return PromptSession(history=history, key_bindings=keys, prompt_continuation="  ")
