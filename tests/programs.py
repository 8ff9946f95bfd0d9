"""The program itself, as a process that a test starts."""

import os
import subprocess
import sys
from pathlib import Path


def environ(home: Path, **variables: str) -> dict[str, str]:
    """Return the environment of a program with this home; nothing else of ours reaches it."""
    keep = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    return {**keep, "WEFT_HOME": str(home), "PYTHONUTF8": "1", **variables}


def run_weft(environ: dict[str, str], *args: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run a command to its end, with this text on its standard input."""
    command = [sys.executable, "-m", "weft", *args]
    return subprocess.run(
        command, env=environ, input=stdin, capture_output=True, text=True, check=False, timeout=120
    )


def start_server(environ: dict[str, str], *args: str) -> "subprocess.Popen[str]":
    """Start `weft serve`; its lines come from `stderr`."""
    command = [sys.executable, "-m", "weft", "serve", *args]
    return subprocess.Popen(command, env=environ, stderr=subprocess.PIPE, text=True)
