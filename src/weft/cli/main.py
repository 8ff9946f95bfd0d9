"""The command `weft`: finds the command that was typed, and turns every error into one line."""

from __future__ import annotations

import errno
import gc
import logging
import os
import signal
import stat
import sys
import threading
from contextlib import suppress
from importlib import import_module
from keyword import iskeyword
from typing import Any

import typer
from typer.core import TyperGroup

from weft.cli.environment import refuse_inspection
from weft.cli.interrupt import CODE as INTERRUPTED
from weft.cli.interrupt import raise_on_interrupt
from weft.errors import WeftError, did_you_mean, missing_package
from weft.types.escape import printable

# Each command is loaded when it is used: `weft --help` reads this table and imports nothing else.
COMMANDS = {
    "ask": "Ask one question and get one answer; `-c` continues it, and nothing is learned from it.",
    "backup": "Copy everything that is kept to one file, while it is in use, and check the copy.",
    "chat": "Talk in the terminal; what is said is remembered.",
    "completion": "Print a script that completes commands and options in bash, zsh or fish.",
    "context": "Show what the model would see, without asking it.",
    "demo": "See it work: a sample workspace, one question, its receipt.",
    "docs": "Print a page of the documentation, or open it; without a name, list the pages.",
    "doctor": "Check settings, workspace, model and terminal, with a remedy for each finding.",
    "export": "Write everything that is kept into a folder of JSON Lines and block texts.",
    "import": "Read a folder that was exported into a store with nothing in it yet: all of it, or nothing.",
    "init": "Make a workspace and a config file; nothing is overwritten.",
    "inspect": "Look at everything in a browser: turns, memory, recipes. Nothing can be changed there.",
    "instructions": "List, add and remove what the assistant is told to always do.",
    "mcp": "Serve the assistant and one person's memory to other programs, over MCP.",
    "memory": "See and change what agents remember, with all its history.",
    "models": "List the models that can answer; install the embedded one.",
    "pair": "Let in the person who was given this code; without a code, list who is in.",
    "people": "See who writes to the assistant, and make several senders one person.",
    "recall": "Choose what compares meanings in searches, and index what was said.",
    "recipes": "List, show and check recipes.",
    "restore": "Put a backup in the place of the database; the old one is kept beside it.",
    "search": "Search all messages, blocks, notes and facts, and say why each hit was found.",
    "serve": "Stay on: answer on all channels of the settings, tell tasks, learn from what was said.",
    "sessions": "List, read, rename, delete, export and import conversations, and begin new ones.",
    "skills": "List, show and check skills, and try their tools.",
    "tasks": "List, add, change and cancel tasks, without a model.",
    "token": "Make and revoke tokens for the server. Once there is one, every request needs one.",
    "tools": "List, enable and disable the optional tools: files and web pages.",
    "turns": "Show the exact request of every turn, what was in it and why, and what changed.",
}

_COUNTS_TOKENS = frozenset({"ask", "chat", "context", "demo", "serve"})
_RUNS_PROGRAMS = frozenset({"ask", "chat", "mcp", "serve", "skills"})


class LazyGroup(TyperGroup):
    """A group whose commands are modules of this folder."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        if cmd_name in _RUNS_PROGRAMS:
            refuse_inspection()
        if cmd_name in _COUNTS_TOKENS:
            threading.Thread(target=_load_vocabulary, daemon=True).start()
        module = f"{cmd_name}_" if iskeyword(cmd_name) else cmd_name
        command = import_module(f"weft.cli.{module}").app
        gc.freeze()
        gc.enable()  # `__main__.py` turned it off for the imports
        raise_on_interrupt()
        command.rich_markup_mode = None  # plain help, in which a flag does not look like a value
        return typer.main.get_command(command)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            ctx.fail(f"There is no command {args[0]!r}: {did_you_mean(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def _load_vocabulary() -> None:
    """Load the vocabulary of token counts while a command is imported: 50 ms that hold no lock of Python."""
    import_module("weft.tokens").load_vocabulary()


class _Printable(logging.Formatter):
    """Keeps what a file's name, or the last words of a server, put into a log from moving the cursor."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


class _Stderr(logging.Handler):
    """Writes to the stderr of the moment, since a spinner puts its own in the place of it."""

    def emit(self, record: logging.LogRecord) -> None:
        with suppress(OSError):
            sys.stderr.write(f"{self.format(record)}\n")


app = typer.Typer(
    name="weft",
    cls=LazyGroup,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        version: Any = import_module("weft.types.version").VERSION
        typer.echo(f"weft {version}")
        raise typer.Exit


@app.callback()
def weft(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Show the version."
    ),
    verbose: bool = typer.Option(False, "--verbose", "-v", help="Log to stderr what is decided and why."),
) -> None:
    """Weft weaves what a model sees, and shows you all of it.

    Start with `weft demo`, then `weft init` and `weft ask "..."`.
    """
    handler = _Stderr()
    handler.setFormatter(_Printable("%(name)s: %(message)s" if verbose else "weft: %(message)s"))
    if not verbose:
        # An optional file that is not there is no news at every call; `--explain` and `doctor` tell.
        handler.addFilter(lambda record: not getattr(record, "missing", False))
    logging.basicConfig(level=logging.INFO if verbose else logging.WARNING, handlers=[handler])


def main() -> None:
    """Run the command line; errors of ours become one line on stderr and their exit code."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:  # the caller closed it
            setattr(sys, name, open(os.devnull, "r+"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    code = _exit_code()
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # the end of the interpreter has nothing to say
    for stream in (sys.stdout, sys.stderr):
        _abandon_unless_flushed(stream)
    sys.exit(code)


def _exit_code() -> int:
    try:
        code = _run()
        sys.stdout.flush()
    except WeftError as error:
        code = _complain(str(error), error.exit_code)
    except ModuleNotFoundError as error:
        code = _complain(missing_package(error), 1)
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BrokenPipeError:
        code = 128 + signal.SIGPIPE  # nobody reads any more: say nothing
    except OSError as error:
        code = _complain_of_output(error)
    return code


def _run() -> int:
    try:
        app()
    except SystemExit as error:
        if isinstance(error.__context__, BrokenPipeError):  # typer makes an exit code 1 of it
            raise error.__context__ from None
        return error.code if isinstance(error.code, int) else 0
    return 0


def _complain(sentence: str, code: int) -> int:
    with suppress(OSError):  # a terminal that was closed
        typer.secho(f"weft: {printable(sentence)}", fg="red" if sys.stderr.isatty() else None, err=True)
    return code


def _complain_of_output(error: OSError) -> int:
    if error.errno == errno.EIO and stat.S_ISCHR(os.fstat(1).st_mode):
        return 128 + signal.SIGHUP  # the terminal was closed
    return _complain(f"The output cannot be written: {error.strerror}.", 1)


def _abandon_unless_flushed(stream: Any) -> None:
    """Keep Python from flushing at its end, with a traceback, what could not be written now."""
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
