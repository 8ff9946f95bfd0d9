"""The blocks of the documentation, and a reader who types them in a home of their own."""

import os
import re
import shlex
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Sequence
from configparser import ConfigParser
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from markdown_it import MarkdownIt

ROOT = Path(__file__).parent.parent
GENERATED = re.compile(r"<!-- made by `make reference` -->.*?<!-- the end of [^>]*-->", re.DOTALL)
SAVE = re.compile(r"[Ss]ave\s+this\s+as\s+`([^`]+)`[^`:]*:\s*$")
STAND_INS = (
    *("claude", "docker", "journalctl", "loginctl", "ollama", "opentelemetry-instrument"),
    *("pip", "pipx", "scp", "systemctl"),
)
"""Programs that are not Weft's. Their calls are recorded, and `test_docs_pages.py` checks each."""

_STAND_IN = '#!/bin/sh\necho "$(basename "$0") $*" >> "$WEFT_TEST_CALLS"\n'
_CURL = """#!{python}
import sys, urllib.request
url = next(each for each in sys.argv[1:] if each.startswith("http"))
given = dict(zip(sys.argv[1:-1], sys.argv[2:]))
headers = dict([given["-H"].split(": ")]) if "-H" in given else {{}}
request = urllib.request.Request(url, given["-d"].encode() if "-d" in given else None, headers)
print(urllib.request.urlopen(request).read().decode())
"""


@dataclass(frozen=True)
class Block:
    """One fenced block of a page; `save_as` is the file that the sentence before it names."""

    page: str
    line: int
    language: str
    text: str
    save_as: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def blocks(path: Path) -> list[Block]:
    """Return the blocks of a page, without those that the program wrote itself."""
    page = path.relative_to(ROOT).as_posix()
    text = GENERATED.sub(lambda match: "\n" * match[0].count("\n"), path.read_text("utf-8"))
    found, before = [], ""
    for token in MarkdownIt("commonmark").parse(text):
        if token.type in {"fence", "code_block"}:
            named = SAVE.search(before)
            line = token.map[0] + 1 if token.map else 0
            found.append(Block(page, line, token.info.strip(), token.content, named[1] if named else ""))
        before = (
            token.content if token.type == "inline" else before if token.type == "paragraph_close" else ""
        )
    return found


@dataclass
class Typed:
    """A command, what is typed into the program that it starts, and lines that it must print."""

    command: str
    typed: list[str] = field(default_factory=list)
    prints: list[str] = field(default_factory=list)


def commands(block: Block) -> list[Typed]:
    """Read a block of commands: `$` begins one, `>` is typed into it, and the rest is what it prints."""
    found: list[Typed] = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            found.append(Typed(line[2:]))
            continue
        assert found, f"{block}: the block does not begin with a command: write `$ ` before it"
        if line.startswith("> "):
            found[-1].typed.append(line[2:])
        elif line.strip():
            found[-1].prints.append(line)
    return found


def wanted(line: str) -> re.Pattern[str]:
    """Return the pattern of a line in which `...` stands for anything."""
    return re.compile(".*".join(map(re.escape, line.strip().split("..."))))


class Reader:
    """Somebody who goes through a page from top to bottom, in an empty home."""

    def __init__(self, folder: Path, environ: dict[str, str], addresses: dict[str, str]) -> None:
        self.home, self.work, self.calls = folder / "home", folder / "work", folder / "calls"
        programs = folder / "programs"
        for each in (self.home, self.work, programs):
            each.mkdir()
        for name in STAND_INS:
            _write_program(programs / name, _STAND_IN)
        _write_program(programs / "curl", _CURL.format(python=sys.executable))
        keep = {name: os.environ[name] for name in ("LANG", "TMPDIR") if name in os.environ}
        path = (str(programs), str(Path(sys.executable).parent), os.environ["PATH"])
        self.environ = keep | {
            "HOME": str(self.home),
            "PATH": os.pathsep.join(path),
            "OLLAMA_HOST": "127.0.0.1:9",
            "PYTHONUTF8": "1",
            "WEFT_TEST_CALLS": str(self.calls),
            **environ,
        }
        self._fixed = set(environ)
        self._port = str(_free_port())
        self._addresses = {"127.0.0.1:8713": f"127.0.0.1:{self._port}", **addresses}
        self._running: list[subprocess.Popen[str]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._running:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=60)

    def save(self, block: Block) -> None:
        target = self.work / block.save_as.replace("~", str(self.home), 1)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(self.here(block.text), "utf-8")

    def run_python(self, block: Block) -> None:
        self._run([sys.executable, "-c", self.here(block.text)], str(block))

    def run(self, typed: Typed, where: str) -> None:
        """Run a command as a shell does. A server runs on until the page ends."""
        words = shlex.split(typed.command)
        if words[0] == "export":
            name, _, value = words[1].partition("=")
            self.environ |= {} if name in self._fixed else {name: value}
        elif words[:2] == ["weft", "serve"] and "--print-unit" not in words:
            self._serve([*words, "--port", self._port])
        elif words[:2] == ["weft", "mcp"] and "--http" in words:
            self._serve([*words, "--port", "0"])
        else:
            error = bool(typed.prints) and typed.prints[0].startswith("weft: ")
            stdin = "".join(f"{line}\n" for line in typed.typed)
            printed = self._run(["bash", "-c", self.here(typed.command)], where, stdin=stdin, fails=error)
            for line in typed.prints:
                assert wanted(self.here(line)).search(printed), f"{where}: no {line!r} in\n{printed}"
            if words[0] == "systemctl" and "--now" in words:
                self._serve([*self._unit()["Service"]["ExecStart"].split(), "--port", self._port])

    def _unit(self) -> ConfigParser:
        unit = ConfigParser(interpolation=None)
        unit.optionxform = str  # type: ignore[assignment, method-assign]
        assert unit.read(self.home / ".config/systemd/user/weft.service")
        return unit

    def here(self, text: str) -> str:
        for address, ours in self._addresses.items():
            text = text.replace(address, ours)
        return text

    def _run(self, command: Sequence[str], where: str, *, stdin: str = "", fails: bool = False) -> str:
        done = subprocess.run(
            command,
            cwd=self.work,
            env=self.environ,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        printed = f"{done.stdout}\n{done.stderr}"
        assert (done.returncode != 0) == fails, (
            f"{where}: {command[-1]} ended with {done.returncode}\n{printed}"
        )
        return printed

    def _serve(self, command: Sequence[str]) -> None:
        process = subprocess.Popen(
            command,
            cwd=self.work,
            env=self.environ,
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
        )
        self._running.append(process)
        assert process.stderr is not None
        for line in process.stderr:
            if "HTTP is open" in line or "/mcp" in line:
                return
        raise AssertionError(f"{shlex.join(command)} did not start")


def _write_program(path: Path, text: str) -> None:
    path.write_text(text, "utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
