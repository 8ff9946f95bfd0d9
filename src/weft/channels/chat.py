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
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from functools import partial

from rich.console import Console
from rich.markup import escape

from weft.channels.attachments import (
    missing_files,
    named_files,
    private_files,
    read_attachment,
    with_attachments,
)
from weft.channels.completions import Completions
from weft.channels.live_markdown import GrowingText
from weft.channels.terminal import show, show_notice
from weft.channels.terminal_consent import TerminalConsent, editor
from weft.errors import WeftError
from weft.gateway.assistant import Assistant
from weft.gateway.background import take_reminders
from weft.gateway.commands import is_command
from weft.gateway.waiting import pause
from weft.types.escape import printable
from weft.types.message import ToolCall
from weft.types.reply import Done, Event, Reading, TextDelta, ToolFinished, ToolStarted
from weft.types.request import TurnRequest

LEAVE = frozenset({"/quit", "/exit"})
LEAVE_HELP = "\n- `/quit` leaves; so does Ctrl-D."
EMPTY_ANSWER = "The model gave an empty answer: ask again, or choose another model with `/model`."
_LOOK_SECONDS = 1.0
"""How often the reminders are looked at while a person types nothing."""
_SHOWN = 100
_CHUNK_BYTES = 65_536


@dataclass(slots=True)
class Chat:
    """One conversation at a terminal, or with a program at the other end of a pipe.

    `left` is called with the id of a session that the person leaves for a new one.
    """

    assistant: Assistant
    request: TurnRequest
    out: Console
    err: Console
    consent: TerminalConsent | None = None
    max_attachment_bytes: int = 1_000_000
    left: Callable[[str], Awaitable[None]] | None = None

    async def run(self, lines: AsyncIterator[str]) -> int:
        """Answer every line until there are no more. Returns how many could not be answered."""
        failed = 0
        await self._remind()
        while (line := await self._next(lines)) is not None:
            text = line.strip()
            if text in LEAVE:
                break
            if not text:
                continue
            before = self.request.session
            try:
                await _stoppable(self._answer(text), self.out)
            except WeftError as error:
                failed += 1
                self._complain(str(error))
            if text.lower() == "/new" and self.left is not None and self.request.session != before:
                await self.left(before)
            await self._remind()
        return failed

    async def _next(self, lines: AsyncIterator[str]) -> str | None:
        """Return the next line, if there is one. Reminders that become due meanwhile are shown."""
        stopped = asyncio.Event()
        reminding = asyncio.create_task(self._remind_until(stopped))
        try:
            return await anext(lines, None)
        finally:  # not cancelled, since a reminder that is taken must be shown
            stopped.set()
            await reminding

    async def _answer(self, text: str) -> None:
        """Send a message and show its answer as it comes; go on in the session of that answer."""
        request, is_empty, notice = self._with_files(text), False, ""
        with GrowingText(self.out) as growing:
            if self.consent is not None:
                self.consent.growing = growing
            async with aclosing(self.assistant.handle(request)) as events:
                async for event in events:
                    if isinstance(event, Done):
                        self.request = replace(self.request, session=event.reply.session_id)
                        is_empty, notice = not event.reply.text.strip(), event.reply.notice
                    _show_event(event, growing)
            if text.lower() == "/help":
                growing.add(LEAVE_HELP)
        if is_empty:
            self._complain(EMPTY_ANSWER)
        if notice:
            show_notice(notice, self.out if self.out.is_terminal else self.err)

    def _with_files(self, text: str) -> TurnRequest:
        """Return the request for a line, with the files that it names as `@path`.

        Raises:
            ConfigError: a file cannot be attached.
        """
        request = replace(self.request, text=text)
        if is_command(text):
            return request
        for name in missing_files(text):
            self._complain(f"There is no file {name!r}, so only its name is sent.")
        for name in private_files(text):
            self._complain(f"{name!r} is private, so only its name is sent: attach it with `weft ask -f`.")
        paths = named_files(text)
        files = [read_attachment(path, max_bytes=self.max_attachment_bytes) for path in paths]
        return with_attachments(request, files)

    def _complain(self, error: str) -> None:
        sentence = escape(printable(error))
        if self.out.is_terminal:
            self.out.print(f"[red]{sentence}[/]")
        else:
            self.err.print(f"weft: {sentence}", soft_wrap=True)

    async def _remind_until(self, stopped: asyncio.Event) -> None:
        await pause(stopped, _LOOK_SECONDS)
        while not stopped.is_set():
            await self._remind()
            await pause(stopped, _LOOK_SECONDS)

    async def _remind(self) -> None:
        """Show the reminders that are due. A program that reads a pipe gets them apart from the answers."""
        store = await self.assistant.store.get()
        for text in await take_reminders(store, self.request.caller.channel):
            draw = partial(show, text, self.out if self.out.is_terminal else self.err)
            if self.consent is None:
                draw()
            else:
                await editor().print_above(draw)


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


async def skippable(work: Awaitable[None], what: str, out: Console, err: Console) -> None:
    """Do work beside the conversation, with a line that says so. Ctrl-C and a model that fails end it."""
    if out.is_terminal:
        err.print(f"[dim]{what} … (Ctrl-C skips it)[/]")
    with suppress(WeftError):  # it is tried again later
        await _stoppable(work, out)


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


async def typed_lines(history: Sequence[str], out: Console, completions: Completions) -> AsyncIterator[str]:
    """Yield what a person types, with line editing, several lines, and their history at the arrow keys."""
    session = editor().make_prompt(history, completions)
    keys = "Enter sends, Alt-Enter begins a new line, Tab completes, Ctrl-C stops an answer, Ctrl-D leaves."
    out.print(f"[dim]{keys}[/]")
    while True:
        try:
            yield await session.prompt_async("› ")
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
