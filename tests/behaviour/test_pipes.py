"""Pipes, full disks and signals: every command ends quietly, with the exit code that a shell expects."""

import json
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from programs import environ, run_weft
from weft.cli.main import COMMANDS
from weft.testing import LoopbackVendor
from weft.testing.vendors import SentRequest

HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}
CALLS = {
    "ask": ["-p", "scripted", "hello"],
    "backup": ["{home}/new.backup"],
    "chat": ["-p", "scripted"],
    "completion": ["bash"],
    "context": ["-p", "scripted", "hello"],
    "docs": ["config"],
    "demo": ["-p", "scripted", "--folder", "{home}/sample"],
    "doctor": [],
    "export": ["{home}/new"],
    "import": ["{home}/old"],
    "init": [],
    "inspect": ["--help"],
    "mcp": [],
    "memory": ["list"],
    "models": [],
    "pair": [],
    "people": ["list"],
    "recall": ["status"],
    "recipes": ["list"],
    "restore": ["{home}/old.backup"],
    "search": ["hello"],
    "serve": ["--print-unit"],
    "sessions": ["list"],
    "skills": ["list"],
    "instructions": ["list"],
    "tasks": ["list"],
    "token": ["list"],
    "tools": ["list"],
    "turns": ["list"],
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
        stdin=subprocess.PIPE if command in STDIN else subprocess.DEVNULL,
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
    reader, closed_pipe = os.pipe()
    os.close(reader)

    done = subprocess.run(
        [sys.executable, "-m", "weft", *args],
        env=environ(tmp_path),
        stdout=closed_pipe,
        stderr=subprocess.PIPE,
        check=False,
        timeout=60,
    )

    os.close(closed_pipe)
    assert (done.returncode, done.stderr) == (141, b"")


def test_closed_streams_are_no_error(tmp_path: Path) -> None:
    command = f"{sys.executable} -m weft ask -p scripted hi <&- >&-"

    done = subprocess.run(
        ["bash", "-c", command], env=environ(tmp_path), stderr=subprocess.PIPE, check=False, timeout=60
    )

    assert (done.returncode, done.stderr) == (0, b"")


class SlowVendor(LoopbackVendor):
    """A vendor that sends the first words of its answer, and the rest when the test lets it go on."""

    def __init__(self) -> None:
        super().__init__("openai", ["one two three four five six\n" * 20_000])
        self.goes_on, self.is_done, self.sent = Event(), Event(), 0

    def _chunks(self, item: Any, request: SentRequest) -> Iterator[bytes]:
        try:
            for chunk in super()._chunks(item, request):
                if self.sent == 10:
                    self.goes_on.wait(60)
                self.sent += 1
                yield chunk
        finally:
            self.is_done.set()


INTERRUPTING = """
import os, signal, sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["INTERRUPTED_IMPORT"]:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Finder())
"""


@pytest.mark.parametrize("module", ["weft.cli.main", "typer", "weft.errors", "weft.cli.ask", "weft.compose"])
def test_ctrl_c_while_the_program_is_imported_ends_it_without_a_word(tmp_path: Path, module: str) -> None:
    (tmp_path / "sitecustomize.py").write_text(INTERRUPTING, "utf-8")
    around = environ(tmp_path / "home", INTERRUPTED_IMPORT=module)
    around["PYTHONPATH"] = os.pathsep.join(filter(None, (str(tmp_path), around.get("PYTHONPATH"))))

    done = run_weft(around, "ask", "-p", "scripted", "hi")

    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP, signal.SIGTERM])
def test_a_signal_stops_the_answer_and_what_was_said_is_kept(tmp_path: Path, number: int) -> None:
    with SlowVendor() as vendor:
        child = subprocess.Popen(
            [sys.executable, "-m", "weft", "ask", "Count"],
            env=environ(tmp_path, **vendor.environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert child.stdout is not None
        assert child.stdout.read(7) == "one two"
        child.send_signal(number)
        _, complaint = child.communicate(timeout=60)
        vendor.goes_on.set()
        assert vendor.is_done.wait(60)

    assert (child.returncode, complaint) == (128 + number, "")
    assert vendor.sent < 20_000, "the client hung up"
    text = _only_conversation(tmp_path)
    assert "[user]\nCount" in text
    assert "one two" in text
    assert "The answer was cancelled here." in text


def test_an_answer_that_nobody_reads_to_its_end_stops_the_model_and_is_kept(tmp_path: Path) -> None:
    with SlowVendor() as vendor:
        vendor.goes_on.set()
        done = subprocess.run(
            ["bash", "-c", f"{sys.executable} -m weft ask Count | head -1; exit ${{PIPESTATUS[0]}}"],
            env=environ(tmp_path, **vendor.environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert vendor.is_done.wait(60)

    assert (done.returncode, done.stdout, done.stderr) == (141, "one two three four five six\n", "")
    assert vendor.sent < 100_000, "the client hung up"
    assert "one two" in _only_conversation(tmp_path)


def test_a_terminal_that_is_closed_ends_a_chat_quietly(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    with SlowVendor() as vendor:
        child = subprocess.Popen(
            ["setsid", "-c", sys.executable, "-m", "weft", "chat"],
            env=environ(tmp_path, TERM="xterm", **vendor.environ),
            stdin=theirs,
            stdout=theirs,
            stderr=subprocess.PIPE,
            text=True,
        )
        os.close(theirs)
        _read_until(ours, "›")
        os.write(ours, b"Count\r")
        _read_until(ours, "three")
        os.close(ours)
        _, complaint = child.communicate(timeout=60)
        vendor.goes_on.set()

    assert (child.returncode, complaint) == (129, "")
    assert "one two" in _only_conversation(tmp_path)


def _only_conversation(home: Path) -> str:
    [session] = json.loads(run_weft(environ(home), "sessions", "list", "--json").stdout)
    return run_weft(environ(home), "sessions", "show", session["id"]).stdout


def _read_until(terminal: int, words: str) -> None:
    seen = b""
    while words.encode() not in seen:
        assert select.select([terminal], [], [], 60)[0], seen
        seen += os.read(terminal, 65536)
        if b"\x1b[6n" in seen:  # it asks where the cursor is, as editors do
            seen = seen.replace(b"\x1b[6n", b"")
            os.write(terminal, b"\x1b[1;1R")
