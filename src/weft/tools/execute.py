"""One executor for the tools of all skills: a call becomes a command line, which is run without a shell.

Nothing in a value can be a command, then. A value could still pass for an option of the program: the order of
the words prevents that.
"""

from __future__ import annotations

import logging
import math
import os
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from weft.errors import ToolError, did_you_mean
from weft.tools.descriptor import Argument, Descriptor, Execution, Resolve, is_plain_name
from weft.tools.interpreters import is_interpreter, refusal
from weft.tools.process import (
    Command,
    ExecutionSettings,
    Finished,
    clean_environment,
    find_program,
    run_process,
)
from weft.workspace.files import inside

SCRIPTS_FOLDER = "scripts"
_NEWLINES = re.compile(r"\r\n?|\\r\\n|\\n")
_LARGEST_EXACT_FLOAT = 2.0**53
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolEnvironment:
    """Where the tools of one skill run: their descriptor, folder and limits."""

    descriptor: Descriptor
    directory: str
    workspace: str | None = None
    settings: ExecutionSettings = ExecutionSettings()

    @property
    def runs_in(self) -> str:
        return self.workspace or self.directory


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolving:
    """A command that would run first, to give a parameter another value; or why it would not run."""

    param: str
    argv: tuple[str, ...] = ()
    refused: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a call would run. Where a value is to be resolved, the command line still has the original."""

    argv: tuple[str, ...]
    program: str
    directory: str
    resolving: tuple[Resolving, ...] = ()


def argv(spec: Execution, arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the command line of a call: binary, subcommand, then the arguments in the order of the file.

    Raises:
        ToolError: a parameter is missing, or has a value that cannot be an argument.
    """
    return _command_line(spec, values(spec, arguments))


def values(spec: Execution, arguments: Mapping[str, Any]) -> tuple[str | None, ...]:
    """Return the value of each argument of the file as text, or None where nothing is written.

    Raises:
        ToolError: a parameter is missing, or has a value that cannot be an argument.
    """
    return tuple(_value(arg, arguments.get(arg.param)) for arg in spec.args)


def plan(tool: str, arguments: Mapping[str, Any], bench: ToolEnvironment) -> Plan:
    """Return what a call would run, without running anything.

    Raises:
        ToolError: the call would be refused.
    """
    spec = _spec(tool, bench)
    texts = values(spec, arguments)
    command = _command(bench, spec.binary, spec.subcommand)
    resolving = [
        _resolving(arg, value, bench)
        for arg, value in zip(spec.args, texts, strict=True)
        if arg.resolve is not None and value is not None and arg.kind != "flagifboolean"
    ]
    return Plan(
        argv=_command_line(spec, texts),
        program=command.program,
        directory=command.directory,
        resolving=tuple(resolving),
    )


async def run(tool: str, arguments: Mapping[str, Any], bench: ToolEnvironment) -> str:
    """Run a call, and give what the program wrote.

    Raises:
        ToolError: the call was refused, the program failed, or its time was over.
    """
    spec = _spec(tool, bench)
    texts = list(values(spec, arguments))
    command = _command(bench, spec.binary, spec.subcommand)
    ends = time.monotonic() + bench.settings.seconds
    for at, (arg, value) in enumerate(zip(spec.args, texts, strict=True)):
        if arg.resolve is not None and value is not None and arg.kind != "flagifboolean":
            texts[at] = await _resolved(arg, value, bench, ends)
    words = _command_line(spec, texts)
    done = await run_process(replace(command, args=words[1:]), _until(ends, bench.settings))
    if done.code != 0:
        raise ToolError(_failure(spec, done, bench.settings))
    # Some programs report a success on the other stream; an empty answer would tell the model nothing.
    return done.stdout if done.stdout.strip() else done.stderr


# --- what may run


def _spec(tool: str, bench: ToolEnvironment) -> Execution:
    known = bench.descriptor.execution
    if tool not in known:
        raise ToolError(f"There is no tool {tool!r}: {did_you_mean(tool, known)}")
    return known[tool]


def _command(bench: ToolEnvironment, binary: str, subcommand: str) -> Command:
    """Return the program of an allowlisted binary, without arguments."""
    allowed = bench.descriptor.allowlist.get(binary)
    if allowed is None or not is_plain_name(binary):
        raise ToolError(f"binary not allowlisted: {binary}")
    if subcommand not in allowed:
        raise ToolError(f"subcommand not allowlisted: {subcommand}")
    environment = clean_environment(os.environ, workspace=bench.workspace)
    program = find_program(binary, environment)
    if is_interpreter(binary, program) and not bench.settings.allow_scripts:
        raise ToolError(f"A program may not run: {refusal(binary)}.")
    return Command(program=program, directory=bench.runs_in, environment=environment)


def _until(ends: float, settings: ExecutionSettings) -> ExecutionSettings:
    """Return the settings with the time that is left: resolving values counts too."""
    return replace(settings, seconds=max(0.0, ends - time.monotonic()))


def _failure(spec: Execution, done: Finished, settings: ExecutionSettings) -> str:
    name = f"{spec.binary} {spec.subcommand}".strip()
    if done.code is None:
        said = (
            f"{name} was stopped because it ran longer than {settings.seconds:g} seconds: "
            "ask for less, or raise `tools.seconds`."
        )
    else:
        said = f"{name} failed with exit code {done.code}."
    streams = (("stdout", done.stdout), ("stderr", done.stderr))
    return "\n".join([said, *(f"{label}:\n{text.rstrip()}" for label, text in streams if text.strip())])


# --- the words of a command line


def _command_line(spec: Execution, texts: Sequence[str | None]) -> tuple[str, ...]:
    """Build the words of a command line in which no value can pass for an option.

    A positional value that begins with a dash stands behind `--`, if the program is known to honor that.
    Behind `--` no option of ours would be seen, so the options stand first then. Otherwise the order is that
    of the file, and no `--` is written.

    Raises:
        ToolError: a value could pass for an option.
    """
    options: list[str] = []
    positionals: list[str] = []
    in_order: list[str] = []
    for arg, value in zip(spec.args, texts, strict=True):
        if value is None:
            continue
        _check_not_an_option(spec, arg, value)
        if arg.kind == "positional":
            positionals.append(value)
            in_order.append(value)
        else:
            words = [value] if arg.kind == "flagifboolean" else _option(arg, value)
            options += words
            in_order += words
    guarded = any(value.startswith("-") for value in positionals)
    rest = [*options, "--", *positionals] if guarded else in_order
    return (spec.binary, *spec.subcommand.split(), *rest)


def _check_not_an_option(spec: Execution, arg: Argument, value: str) -> None:
    """Refuse a value that a program could take for an option.

    Raises:
        ToolError: it begins with a dash, and neither `--` nor `--name=value` can protect it.
    """
    if not value.startswith("-") or arg.kind == "flagifboolean":
        return
    is_safe = spec.end_of_options if arg.kind == "positional" else _flag(arg).startswith("--")
    if not is_safe:
        raise ToolError(f"a value must not begin with a dash: {arg.param}")


def _flag(arg: Argument) -> str:
    flag = arg.flag or arg.param
    return flag if flag.startswith("-") else f"--{flag}"


def _option(arg: Argument, value: str) -> list[str]:
    """Return an option and its value, in one word where the value alone would look like an option."""
    flag = _flag(arg)
    return [f"{flag}={value}"] if value.startswith("-") else [flag, value]


def _value(arg: Argument, raw: Any) -> str | None:
    if arg.kind == "flagifboolean":
        return (arg.flag_if_true if _is_true(raw) else arg.flag_if_false) or None
    if raw is None:
        if arg.kind == "positional":
            raise ToolError(f"missing parameter: {arg.param}")
        return None
    text = _text(arg.param, raw)
    return _NEWLINES.sub("\n", text) if arg.normalize_newlines else text


def _is_true(raw: Any) -> bool:
    if isinstance(raw, str):
        return raw.strip().lower() == "true"
    return isinstance(raw, bool | int | float) and raw != 0


def _text(param: str, raw: Any) -> str:
    if isinstance(raw, bool):
        return "true" if raw else "false"
    if isinstance(raw, float):
        return _number(param, raw)
    if not isinstance(raw, str | int):
        kind = "a list" if isinstance(raw, list | tuple) else "an object"
        raise ToolError(f"The parameter {param!r} must be text, a number or true or false, not {kind}.")
    try:
        text = str(raw)
        text.encode()
    except ValueError as error:
        raise ToolError(f"The parameter {param!r} cannot be written as UTF-8 text: change it.") from error
    if "\0" in text:
        raise ToolError(f"The parameter {param!r} holds a NUL character: remove it.")
    return text


def _number(param: str, raw: float) -> str:
    """Write a number as people do: JSON does not tell 5 from 5.0, but programs do."""
    if not math.isfinite(raw):
        raise ToolError(f"The parameter {param!r} is not a finite number: change it.")
    if raw.is_integer() and abs(raw) < _LARGEST_EXACT_FLOAT:
        return str(int(raw))
    return repr(raw)


# --- values that a command resolves


async def _resolved(arg: Argument, value: str, bench: ToolEnvironment, ends: float) -> str:
    """Resolve a value by its command. If that fails or prints nothing, the value stays."""
    try:
        command = _resolver(arg, value, bench)
        done = await run_process(command, _until(ends, bench.settings))
    except ToolError as error:
        _log.warning("The parameter %r keeps its value: %s", arg.param, error)
        return value
    texts = done.stdout.strip()
    return texts if done.code == 0 and texts and "\0" not in texts else value


def _resolving(arg: Argument, value: str, bench: ToolEnvironment) -> Resolving:
    try:
        command = _resolver(arg, value, bench)
    except ToolError as error:
        return Resolving(param=arg.param, refused=str(error))
    return Resolving(param=arg.param, argv=(command.program, *command.args))


def _resolver(arg: Argument, value: str, bench: ToolEnvironment) -> Command:
    """Return the command that resolves a value, with the value in its place.

    Raises:
        ToolError: it may not run, or the value would be one of its options.
    """
    spec = arg.resolve or Resolve()
    words = spec.filled(value, arg.param)
    for word, written in zip(words, spec.args, strict=True):
        if written == "--" and spec.end_of_options:
            break
        if word.startswith("-") and not written.startswith("-"):
            raise ToolError(f"The value of {arg.param!r} would be an option of the command that resolves it.")
    if spec.script:
        command = _script(spec.script, bench)
        return replace(command, args=(*command.args, *words))
    command = _command(bench, spec.binary, spec.subcommand)
    return replace(command, args=(*spec.subcommand.split(), *words))


def _script(name: str, bench: ToolEnvironment) -> Command:
    """Return a script of the skill, run by `sh` unless it names an interpreter."""
    if not bench.settings.allow_scripts:
        raise ToolError("Scripts of skills may not run: set `skills.allowScripts` to allow them.")
    path = _script_path(name, bench.directory)
    environment = clean_environment(os.environ, workspace=bench.workspace)
    if os.access(path, os.X_OK) and _has_interpreter(path):
        return Command(program=path, directory=bench.runs_in, environment=environment)
    shell = find_program("sh", environment)
    return Command(program=shell, args=(path,), directory=bench.runs_in, environment=environment)


def _script_path(name: str, directory: str) -> str:
    """Return the real path of a script, which may be named without its `.sh`."""
    folder = os.path.join(os.path.realpath(directory), SCRIPTS_FOLDER, "")
    for file_name in (name, f"{name}.sh") if is_plain_name(name) else ():
        path = inside(directory, os.path.join(SCRIPTS_FOLDER, file_name))
        if path is not None and path.startswith(folder) and os.path.isfile(path):
            return path
    raise ToolError(f"There is no script {name!r} in the skill's `{SCRIPTS_FOLDER}` folder.")


def _has_interpreter(path: str) -> bool:
    try:
        with open(path, "rb") as opened:
            return opened.read(2) == b"#!"
    except OSError:
        return False
