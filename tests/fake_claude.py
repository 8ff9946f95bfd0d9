"""A stand-in for the command `claude`: it writes down how it was called, and speaks the stream protocol."""

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

PROGRAM = """#!{python}
import json, os, subprocess, sys, time
from pathlib import Path
home = Path({home!r})
script = json.loads((home / "script.json").read_text())
settings = Path(".claude/settings.local.json")
seen = {{
    "args": sys.argv[1:],
    "stdin": sys.stdin.buffer.read().decode(),
    "settings": settings.read_text() if settings.exists() else None,
    "folder": os.getcwd(),
    "environment": dict(os.environ),
    "pid": os.getpid(),
}}
if script.get("spawn"):
    seen["child"] = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]).pid
(home / "new").write_text(json.dumps(seen))
(home / "new").rename(home / f"{{os.getpid()}}.call")
sys.stderr.write(script.get("stderr", ""))
sys.stderr.flush()
for line in script["lines"]:
    sys.stdout.write((line if isinstance(line, str) else json.dumps(line)) + "\\n")
    sys.stdout.flush()
if script.get("wait_for"):
    while not (home / script["wait_for"]).exists():
        time.sleep(0.01)
    for line in script["then"]:
        print(json.dumps(line), flush=True)
sys.exit(script.get("code", 0))
"""


@dataclass(frozen=True, slots=True)
class FakeClaude:
    """Where the fake lives, what it is told to do, and how it was called."""

    home: Path
    work: Path

    def says(self, *lines: Any, **more: Any) -> None:
        (self.home / "script.json").write_text(json.dumps({"lines": lines, **more}), "utf-8")

    def calls(self) -> list[dict[str, Any]]:
        found = sorted(self.home.glob("*.call"), key=lambda path: path.stat().st_mtime_ns)
        return [json.loads(path.read_text("utf-8")) for path in found]

    @property
    def call(self) -> dict[str, Any]:
        (only,) = self.calls()
        return only

    @property
    def settings(self) -> Path:
        return self.work / ".claude" / "settings.local.json"

    def go_on(self, name: str) -> None:
        (self.home / name).touch()


def install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> FakeClaude:
    """Put the fake first on the PATH, and make the given folder the current one."""
    home, bin_, work = folder / "fake", folder / "bin", folder / "work"
    for path in (home, bin_, work):
        path.mkdir()
    program = bin_ / "claude"
    program.write_text(PROGRAM.format(python=sys.executable, home=str(home)), "utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{bin_}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.chdir(work)
    fake = FakeClaude(home, work)
    fake.says(delta("At "), delta("sea."), result("At sea."))
    return fake


def delta(text: str, **more: Any) -> dict[str, Any]:
    event = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
    return {"type": "stream_event", "event": event, "parent_tool_use_id": None, **more}


def result(text: str, **more: Any) -> dict[str, Any]:
    usage = {"input_tokens": 5, "cache_read_input_tokens": 100, "output_tokens": 7}
    return {
        "type": "result",
        "subtype": "success",
        "is_error": False,
        "result": text,
        "session_id": "s-1",
        "total_cost_usd": 0.01,
        "usage": usage,
        **more,
    }
