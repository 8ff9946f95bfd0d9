"""Small programs and skills for the tests of tools."""

import json
import os
import select
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from weft.tools.descriptor import Descriptor, parse
from weft.tools.execute import ToolEnvironment
from weft.tools.process import ExecutionSettings

SHOW_ARGV = "import json, sys\nprint(json.dumps(sys.argv[1:]))"
"""A program that prints the arguments it got."""
WAIT_SECONDS = 30.0


def program(folder: Path, name: str, source: str) -> Path:
    """A program in Python that can be run by its name if the folder is on the PATH."""
    return executable(folder / name, f"#!{sys.executable} -IS\n{source}\n")


def shell_program(folder: Path, name: str, source: str) -> Path:
    return executable(folder / name, f"#!/bin/sh\n{source}\n")


def executable(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    path.chmod(0o755)
    return path


def on_path(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return folder


def described(
    args: Sequence[Mapping[str, Any]] = (),
    *,
    binary: str = "notes",
    subcommand: str = "add",
    allowlist: Mapping[str, Sequence[str]] | None = None,
    end_of_options: bool = True,
) -> dict[str, Any]:
    """The data of a `tools.json` with the one tool `add_note`, whose program honors `--`."""
    execution = {"tool": "add_note", "binary": binary, "subcommand": subcommand, "args": args}
    return {
        "tools": [{"name": "add_note", "description": "Add a note.", "parameters": {"type": "object"}}],
        "allowlist": {binary: [subcommand]} if allowlist is None else allowlist,
        "execution": [execution | ({"endOfOptions": True} if end_of_options else {})],
    }


def descriptor(args: Sequence[Mapping[str, Any]] = (), **more: Any) -> Descriptor:
    return parse(json.dumps(described(args, **more)), path="tools.json")


def bench(directory: Path, args: Sequence[Mapping[str, Any]] = (), **settings: Any) -> ToolEnvironment:
    """Where `add_note` runs `notes add` with these arguments, in the folder `directory`."""
    return ToolEnvironment(
        descriptor=descriptor(args),
        directory=str(directory),
        workspace=str(directory),
        settings=ExecutionSettings(**settings),
    )


class Line:
    """A named pipe through which a program says something, and on which a test waits for it."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self._handle = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        self._text = ""

    def words(self, count: int) -> list[str]:
        """The words said, as soon as there are so many."""
        while len(self._text.split()) < count or not self._text.endswith("\n"):
            ready, _, _ = select.select([self._handle], [], [], WAIT_SECONDS)
            assert ready, f"only {self._text!r} was said"
            self._text += os.read(self._handle, 4096).decode()
        return self._text.split()

    def say(self, word: str) -> None:
        os.write(self._handle, f"{word}\n".encode())

    def close(self) -> None:
        os.close(self._handle)


def wait_until_gone(pid: int) -> None:
    """Return when a process has ended; fail if it does not."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        ended, _, _ = select.select([handle], [], [], WAIT_SECONDS)
    finally:
        os.close(handle)
    assert ended, f"process {pid} still runs"


def scribe(home: Path) -> Path:
    """Install a skill whose tool `write_down` runs a program in `bin`. Returns the file that it writes."""
    target = home / "written.txt"
    source = f"import sys\nopen({str(target)!r}, 'a').write(sys.argv[1] + '\\n')\nprint('written')"
    program(home / "bin", "scribe", source)
    folder = home / "workspace" / "skills" / "scribe"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: scribe\ndescription: writes\n---\nWrites.\n")
    parameters = {"type": "object", "properties": {"text": {"type": "string"}}}
    described = {
        "tools": [{"name": "write_down", "parameters": parameters}],
        "allowlist": {"scribe": [""]},
        "execution": [{"tool": "write_down", "binary": "scribe", "args": [{"param": "text"}]}],
    }
    (folder / "tools.json").write_text(json.dumps(described))
    return target
