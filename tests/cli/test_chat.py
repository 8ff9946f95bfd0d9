"""`weft chat` as a process: through a pipe, and at a terminal."""

import os
import pty
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

CONFIG = '[scripted]\nreplies = ["One.", "**Two**.", "Three."]\n'


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "config.toml").write_text(CONFIG, "utf-8")
    return {"WEFT_HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "TERM": "xterm", "PYTHONUTF8": "1"}


def talk(environ: dict[str, str], *args: str, stdin: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "weft", "chat", "-p", "scripted", *args],
        input=stdin,
        capture_output=True,
        text=True,
        env=environ,
        timeout=60,
        check=False,
    )


def test_a_conversation_goes_on_where_it_ended(environ: dict[str, str]) -> None:
    first = talk(environ, stdin="hello\nand?\n")
    second = talk(environ, stdin="/context\n")

    assert (first.returncode, first.stdout, first.stderr) == (0, "One.\n**Two**.\n", "")
    assert "messages 1-4" in second.stdout


def test_a_new_session_begins_empty(environ: dict[str, str]) -> None:
    talk(environ, stdin="hello\n")

    assert "messages" not in talk(environ, "--new", stdin="/context\n").stdout


def test_a_session_that_is_not_there_is_one_sentence(environ: dict[str, str]) -> None:
    done = talk(environ, "--session", "gone", stdin="hello\n")

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("weft: There is no session 'gone'")
    assert len(done.stderr.splitlines()) == 1


def test_an_answer_that_failed_is_told_on_stderr_and_by_the_exit_code(environ: dict[str, str]) -> None:
    done = talk(environ, stdin="one\ntwo\nthree\nfour\n")

    assert (done.returncode, done.stdout) == (1, "One.\n**Two**.\nThree.\n")
    assert done.stderr.startswith("weft: The script has no reply for request 4")


def test_what_is_not_utf8_is_replaced_in_a_pipe(environ: dict[str, str]) -> None:
    command = [sys.executable, "-m", "weft", "chat", "-p", "scripted"]
    strict = {**environ, "PYTHONIOENCODING": "utf-8:strict"}

    done = subprocess.run(
        command, input=b"caf\xe9\nmore", capture_output=True, env=strict, timeout=60, check=False
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, b"One.\n**Two**.\n", b"")


def test_a_chat_that_waits_in_a_pipe_ends_when_it_is_told_to(environ: dict[str, str]) -> None:
    command = [sys.executable, "-m", "weft", "chat", "-p", "scripted"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ) as child:
        assert child.stdin
        assert child.stdout
        child.stdin.write(b"hello\n")
        child.stdin.flush()
        assert child.stdout.readline() == b"One.\n"
        child.terminate()

        assert child.wait(timeout=30) == 128 + signal.SIGTERM


class Terminal:
    """A program at a terminal: what it shows, until certain words come; and what a person types."""

    def __init__(self, environ: dict[str, str], *args: str) -> None:
        self._ours, theirs = pty.openpty()
        command = [sys.executable, "-m", "weft", *args]
        self.child = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environ)
        os.close(theirs)
        self._seen = b""

    def read_until(self, words: str) -> str:
        """What it shows up to these words; it may be silent for a minute."""
        wanted = words.encode()
        while wanted not in self._seen:
            ready, _, _ = select.select([self._ours], [], [], 60)
            assert ready, self._seen
            self._seen += os.read(self._ours, 65536)
            if b"\x1b[6n" in self._seen:  # it asks where the cursor is, as editors do
                os.write(self._ours, b"\x1b[1;1R")
                self._seen = self._seen.replace(b"\x1b[6n", b"")
        shown, _, self._seen = self._seen.partition(wanted)
        return shown.decode(errors="replace")

    def type(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def close(self) -> None:
        self.child.kill()
        self.child.wait()
        os.close(self._ours)


def test_at_a_terminal_a_person_types_several_lines_and_leaves(environ: dict[str, str]) -> None:
    terminal = Terminal(environ, "chat", "-p", "scripted")
    try:
        terminal.read_until("›")
        terminal.type("one\x1b\rtwo\r")
        terminal.read_until("One.")
        terminal.read_until("\x1b[?2004h")
        terminal.type("\x04")
        assert terminal.child.wait(timeout=60) == 0
    finally:
        terminal.close()

    search = [sys.executable, "-m", "weft", "search", "two", "--json"]
    shown = subprocess.run(search, capture_output=True, text=True, env=environ, check=True)
    assert "one\\ntwo" in shown.stdout


def test_a_reminder_that_is_due_is_told_apart_from_the_answers(environ: dict[str, str]) -> None:
    add = [sys.executable, "-m", "weft", "tasks", "add", "water the plants", "--due", "2026-01-01 09:00"]
    subprocess.run(add, env=environ, check=True, capture_output=True)

    first, second = talk(environ, stdin="hello\n"), talk(environ, stdin="again\n")

    assert first.stdout == "One.\n"
    assert first.stderr == "⏰ water the plants (due 2026-01-01 09:00, told late)\n"
    assert second.stderr == ""
