"""The program itself, as a process that a test starts."""

import os
import pty
import select
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

WEFT = (sys.executable, "-m", "weft")


def environ(home: Path, **variables: str) -> dict[str, str]:
    """Return the environment of a program with this home; nothing else of ours reaches it."""
    keep = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    return {**keep, "WEFT_HOME": str(home), "PYTHONUTF8": "1", **variables}


def run_weft(
    environ: dict[str, str], *args: str, stdin: str = "", program: Sequence[str] = WEFT
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, with this text on its standard input."""
    return subprocess.run(
        [*program, *args], env=environ, input=stdin, capture_output=True, text=True, check=False, timeout=120
    )


def start_server(environ: dict[str, str], *args: str) -> "subprocess.Popen[str]":
    """Start `weft serve`; its lines come from `stderr`."""
    command = [sys.executable, "-m", "weft", "serve", *args]
    return subprocess.Popen(command, env=environ, stderr=subprocess.PIPE, text=True)


class Terminal:
    """A program at a terminal: what it shows, until certain words come; and what a person types."""

    def __init__(self, environ: dict[str, str], *args: str, program: Sequence[str] = WEFT) -> None:
        self._ours, theirs = pty.openpty()
        command = [*program, *args]
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

    def complete(self, text: str, rest: str) -> None:
        """Type a text, press Tab, and when the rest is there, Enter."""
        self.type(f"{text}\t")
        self.read_until(rest)
        self.type("\r")

    def close(self) -> None:
        self.child.kill()
        self.child.wait()
        os.close(self._ours)
