"""Pipes, full disks and signals: every command ends quietly, with the exit code that a shell expects."""

import json
import os
import pty
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest

from programs import environ, run_weft
from weft.cli.main import COMMANDS
from weft.testing import LoopbackVendor
from weft.testing.vendors import SentRequest
from weft.types.reply import Reply

HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}
CALLS = {
    "ask": ["-p", "scripted", "hello"],
    "backup": ["{home}/new.backup"],
    "chat": ["-p", "scripted"],
    "context": ["-p", "scripted", "hello"],
    "demo": ["-p", "scripted", "--folder", "{home}/sample"],
    "doctor": [],
    "export": ["{home}/new"],
    "import": ["{home}/old"],
    "init": [],
    "mcp": [],
    "memory": ["list"],
    "models": [],
    "pair": [],
    "recipes": ["list"],
    "restore": ["{home}/old.backup"],
    "search": ["hello"],
    "serve": ["--print-unit"],
    "sessions": ["list"],
    "skills": ["list"],
    "tasks": ["list"],
}
STDIN = {
    "chat": "hello\n",
    "mcp": json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}) + "\n",
}


@pytest.fixture(scope="module")
def used_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a home in which every command has something to say."""
    home = tmp_path_factory.mktemp("used")
    for args in (
        ["init"],
        ["ask", "-p", "scripted", "hello"],
        ["tasks", "add", "tea"],
        ["backup", f"{home}/old.backup"],
        ["export", f"{home}/old"],
    ):
        assert run_weft(environ(home), *args).returncode == 0
    return home


def start(home: Path, command: str, stdout: int) -> "subprocess.Popen[str]":
    if command == "import":  # it wants a store with nothing in it
        (home / "weft.db").unlink()
    args = [arg.format(home=home) for arg in CALLS[command]]
    child = subprocess.Popen(
        [sys.executable, "-m", "weft", command, *args],
        env=environ(home, OLLAMA_HOST="127.0.0.1:9"),
        cwd=home,
        stdin=subprocess.PIPE,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(stdout)
    return child


@pytest.mark.parametrize("command", COMMANDS)
def test_a_closed_pipe_is_silence_and_a_full_disk_is_one_sentence(
    used_home: Path, tmp_path: Path, command: str
) -> None:
    reader, closed_pipe = os.pipe()
    os.close(reader)
    sinks = {"pipe": closed_pipe, "full": os.open("/dev/full", os.O_WRONLY)}
    children = {
        name: start(Path(shutil.copytree(used_home, tmp_path / name)), command, sink)
        for name, sink in sinks.items()
    }

    ends = {name: child.communicate(STDIN.get(command), timeout=60) for name, child in children.items()}

    assert (children["pipe"].returncode, ends["pipe"][1]) == (141, "")
    assert children["full"].returncode == 1
    assert ends["full"][1] == "weft: The output cannot be written: No space left on device.\n"


@pytest.mark.parametrize("args", [["--help"], ["--version"], ["ask", "--help"]])
def test_help_into_a_closed_pipe_is_silence(tmp_path: Path, args: list[str]) -> None:
    done = subprocess.run(
        ["bash", "-c", '"$0" -m weft "$@" 2>&1 1>&3 3>&- | cat; exit ${PIPESTATUS[0]}', sys.executable, *args],
        env=environ(tmp_path),
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        timeout=60,
        pass_fds=(),
    )
    assert done.stdout is not None


class SlowVendor(LoopbackVendor):
    """A vendor that sends the first words of its answer, and the rest when the test is done with it."""

    def __init__(self) -> None:
        super().__init__("openai", ["one two three four five six\n" * 2000])
        self.goes_on, self.hung_up = Event(), Event()

    def _chunks(self, item: Reply | object, request: SentRequest) -> Iterator[bytes]:  # type: ignore[override]
        try:
            for number, chunk in enumerate(super()._chunks(item, request)):  # type: ignore[arg-type]
                if number == 8:
                    self.goes_on.wait(60)
                yield chunk
        except GeneratorExit:
            self.hung_up.set()
            raise
