"""Options and input that several commands share."""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import stat
import sys
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from rich.console import Console
from rich.markup import escape

from weft.config import Config, load_config
from weft.errors import ConfigError, StoreError
from weft.gateway.sanitize import clean
from weft.models import stand_in_note, with_named_provider
from weft.private_files import write_private
from weft.providers.choose import NAMES
from weft.types.escape import fenced, printable
from weft.types.limits import ModelInfo
from weft.types.recipe import packaged
from weft.types.request import Caller, TurnRequest

T = TypeVar("T")

Text = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="TEXT",
        help="The message. `-`, or no text at all, reads standard input; data in a pipe is added to it.",
        show_default=False,
    ),
]
RecipeName = Annotated[
    str | None,
    typer.Option(
        "--recipe", "-r", metavar="NAME|FILE", help="The recipe to build with.", autocompletion=packaged
    ),
]
ProviderName = Annotated[
    str | None,
    typer.Option("--provider", "-p", metavar="NAME", help="Who answers.", autocompletion=lambda: list(NAMES)),
]
ModelName = Annotated[
    str | None,
    typer.Option("--model", "-m", metavar="[PROVIDER:]ID", help="The model; `weft models` lists them."),
]
Window = Annotated[
    int | None,
    typer.Option("--window", metavar="TOKENS", help="How many tokens the model reads.", show_default=False),
]
Workspace = Annotated[
    str | None,
    typer.Option("--workspace", "-w", metavar="PATH", help="The folder with SOUL.md and the rest."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for a program to read.")]

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]

CONVERSATION = "chat"
"""The conversation of `weft chat`, unless a session is named."""
PERSON = Caller(agent_id="weft", channel="terminal", sender_id="owner")
"""The person at the terminal: the owner."""

STDIN_WAIT_SECONDS = 0.2
"""How long a pipe at standard input may be silent before it is left out."""

PIPED_WIDTH = 160
"""The width for a pipe: wide enough that no line is wrapped."""

out = Console(highlight=False, width=None if sys.stdout.isatty() else PIPED_WIDTH)
err = Console(stderr=True, highlight=False, width=None if sys.stderr.isatty() else PIPED_WIDTH)


def settings(**overrides: str | int | None) -> Config:
    """Load the settings, with the options of the command line over them.

    A model may be written with its provider before a colon.
    """
    config = load_config().with_overrides(**overrides)
    return with_named_provider(config) if overrides.get("model") else config


def message(words: list[str] | None) -> TurnRequest:
    """Return the message of the command line, cleaned; `-` stands for standard input.

    Without `-`, what waits at standard input is quoted after the words. Data beside words is text from
    outside; standard input alone is the person's message.

    Raises:
        EmptyMessage: there is no text.
    """
    words = words or ["-"]
    if words == ["-"] and sys.stdin.isatty():
        err.print("[dim]Type the message; end it with Ctrl-D.[/]")
    text = " ".join("\n\n" + read_stdin() if word == "-" else word for word in words)
    own = " ".join(word for word in words if word != "-")
    is_outside = bool(own) and "-" in words
    if "-" not in words and (data := _waiting_stdin()).strip():
        text, is_outside = f"{text}\n\n{fenced(data)}", True
    cleaned = clean(text.strip("\n"))
    for note in cleaned.notes:
        typer.echo(f"weft: {note}", err=True)
    request = TurnRequest(text=cleaned.text, caller=PERSON)
    return replace(request, words=own, outside=("standard input",)) if is_outside else request


def note_stand_in(config: Config, info: ModelInfo) -> None:
    """Say once, at the first start, that the embedded model is only a stand-in."""
    note, marker = stand_in_note(info), config.paths.data_dir / ".stand-in"
    if note and not marker.exists():
        err.print(f"[dim]{safe(note)}[/]", soft_wrap=True)
        with suppress(StoreError):  # then it is said again
            write(marker, "")


def waiting_for(info: ModelInfo) -> str:
    """Say what the person waits for until the first word of an answer comes."""
    return "loading the model" if info.provider == "local" else f"waiting for {info.provider}"


def confirm_loss(question: str, *, yes: bool) -> None:
    """Ask before something is deleted for good; a person who says no ends the command.

    Raises:
        ConfigError: nobody can be asked.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise ConfigError("Deleting cannot be taken back: add --yes if that is what you want.")
    typer.confirm(printable(question), abort=True)


def refuse_empty(context: typer.Context, parameter: typer.CallbackParam, value: str | None) -> str | None:
    """Refuse an option or an argument that was given without any text.

    Raises:
        ConfigError: it is empty.
    """
    source = context.get_parameter_source(parameter.name or "")
    if value is None or value.strip() or source is None or source.name == "DEFAULT":
        return value
    if parameter.param_type_name == "option":
        raise ConfigError(f"`{parameter.opts[0]}` is empty: give it a value, or leave it out.")
    end = "write some text there." if parameter.required else "give it a value, or leave it out."
    raise ConfigError(f"{parameter.metavar} is empty: {end}")


def say(text: str) -> None:
    """Print text from outside: as it is into a pipe, without control characters to a terminal."""
    typer.echo(printable(text) if sys.stdout.isatty() else text)


def safe(text: str) -> str:
    """Escape text from outside for a line of ours: neither markup nor control characters have an effect."""
    return escape(printable(text))


def _waiting_stdin() -> str:
    """Return all of standard input if it is a file, or a pipe where something comes at once.

    A program may have inherited a pipe in which nobody ever writes, so a silent one is not waited for.
    """
    mode = os.fstat(sys.stdin.fileno()).st_mode
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
        if not select.select([sys.stdin], [], [], STDIN_WAIT_SECONDS)[0]:
            typer.echo("weft: nothing came on standard input, so it is not sent: add `-` to wait.", err=True)
            return ""
    elif not stat.S_ISREG(mode):
        return ""
    return read_stdin()


def read_stdin() -> str:
    """Read standard input to its end. What is not UTF-8 is replaced, with a note on stderr."""
    data = sys.stdin.buffer.read()
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        typer.echo(f"weft: standard input is not UTF-8: bad bytes became {chr(0xFFFD)}.", err=True)
        return data.decode("utf-8", "replace")


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run async work. Ctrl-C, a closed terminal and a plain `kill` cancel it quietly.

    Without this the last two would end the process at once and leave behind what a tool or a server started
    in a session of its own, which the signal does not reach.
    """
    ended: list[int] = []
    try:
        return asyncio.run(_until_ended(work, ended))
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    except asyncio.CancelledError:
        if not ended:
            raise
        raise typer.Exit(128 + ended[0]) from None
    except BaseExceptionGroup as group:  # a task group wraps the error of an output that cannot be written
        unwritten = _first_os_error(group)
        if unwritten is None:
            raise
        raise unwritten from None


def _first_os_error(error: BaseException) -> OSError | None:
    if isinstance(error, BaseExceptionGroup):
        return next(filter(None, map(_first_os_error, error.exceptions)), None)
    return error if isinstance(error, OSError) else None


async def _until_ended(work: Coroutine[Any, Any, T], ended: list[int]) -> T:
    loop, task = asyncio.get_running_loop(), asyncio.ensure_future(work)

    def end(number: int) -> None:
        ended.append(number)
        loop.remove_signal_handler(number)  # the second one ends us at once
        task.cancel()

    for number in (signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, end, number)
    return await task


def write(path: Path, text: str) -> None:
    """Write a file and its folders, which only their owner may read if they are new.

    Raises:
        StoreError: the place cannot be written to.
    """
    try:
        write_private(path, text)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise StoreError(
            f"{error.filename or path} cannot be written ({reason}): name another place, or set WEFT_HOME."
        ) from error


def show_counts(counts: dict[str, int], *, as_json: bool) -> None:
    """Print how many rows there were of each kind."""
    if as_json:
        typer.echo(json.dumps(counts))
        return
    for name, count in counts.items():
        if count:
            out.print(f"{count:>9,} {name.replace('_', ' ')}")
    if not any(counts.values()):
        out.print("There was nothing in it.")
