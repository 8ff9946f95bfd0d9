"""The command `weft`: finds the command that was typed, and turns every error into one line."""

from __future__ import annotations

import logging
import os
import sys
from importlib import import_module
from keyword import iskeyword
from typing import Any

import typer
from typer.core import TyperGroup

from weft.errors import WeftError, did_you_mean, missing_package
from weft.types.escape import printable

# Each command is loaded when it is used: `weft --help` reads this table and imports nothing else.
COMMANDS = {
    "ask": "Ask one question and get one answer; nothing is remembered.",
    "backup": "Copy everything that is kept to one file, while it is in use, and check the copy.",
    "chat": "Talk in the terminal; what is said is remembered.",
    "context": "Show what the model would see, without asking it.",
    "demo": "See it work: a sample workspace, one question, its receipt.",
    "docs": "Print a page of the documentation, or open it; without a name, list the pages.",
    "doctor": "Check settings, workspace, model and terminal, with a remedy for each finding.",
    "export": "Write everything that is kept into a folder of JSON Lines and block texts.",
    "import": "Read a folder that was exported into a store with nothing in it yet: all of it, or nothing.",
    "init": "Make a workspace and a config file; nothing is overwritten.",
    "mcp": "Serve the assistant and an agent's memory to other programs, over MCP.",
    "memory": "See and change what agents remember, with all its history.",
    "models": "List the models that can answer; install the embedded one.",
    "pair": "Let in the person who was given this code; without a code, list who is in.",
    "recipes": "List, show and check recipes.",
    "restore": "Put a backup in the place of the database; the old one is kept beside it.",
    "search": "Search all messages, blocks and notes that are kept.",
    "serve": "Stay on: answer on all channels of the settings, tell tasks, learn from what was said.",
    "sessions": "List, read, export and import conversations, and begin new ones.",
    "skills": "List, show and check skills, and try their tools.",
    "tasks": "List, add, change and cancel tasks, without a model.",
    "tools": "List, enable and disable the optional tools: files and web pages.",
}


class LazyGroup(TyperGroup):
    """A group whose commands are modules of this folder."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        module = f"{cmd_name}_" if iskeyword(cmd_name) else cmd_name
        return typer.main.get_command(import_module(f"weft.cli.{module}").app)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            ctx.fail(f"There is no command {args[0]!r}: {did_you_mean(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


class _Printable(logging.Formatter):
    """Keeps what a file's name, or the last words of a server, put into a log from moving the cursor."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


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
    handler = logging.StreamHandler()
    handler.setFormatter(_Printable("%(name)s: %(message)s" if verbose else "weft: %(message)s"))
    if not verbose:
        # An optional file that is not there is no news at every call; `--explain` and `doctor` tell.
        handler.addFilter(lambda record: not getattr(record, "missing", False))
    logging.basicConfig(level=logging.INFO if verbose else logging.WARNING, handlers=[handler])


def main() -> None:
    """Run the command line; errors of ours become one line on stderr and their exit code."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    except WeftError as error:
        _fail(str(error), error.exit_code)
    except ModuleNotFoundError as error:
        _fail(missing_package(error), 1)
    except BrokenPipeError:
        # Nobody reads any more: say nothing, and let Python not try to flush either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:
        _fail(f"The output cannot be written: {error.strerror}.", 1)


def _fail(sentence: str, code: int) -> None:
    typer.secho(f"weft: {printable(sentence)}", fg="red" if sys.stderr.isatty() else None, err=True)
    sys.exit(code)
