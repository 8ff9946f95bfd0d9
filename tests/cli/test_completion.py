"""`weft completion` in real shells: a person types, and presses Tab."""

import os
import pty
import select
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from programs import environ, run_weft
from weft.cli.main import COMMANDS

START_FILE = {"bash": ".bashrc", "zsh": ".zshrc"}


class ShellAtTerminal:
    """A shell with the script, as its page says to install it."""

    def __init__(self, name: str, home: Path) -> None:
        shell = shutil.which(name)
        if shell is None:
            pytest.skip(f"{name} is not installed here")
        script = run_weft(environ(home), "completion", name)
        assert (script.returncode, script.stderr) == (0, "")
        (home / START_FILE[name]).write_text(f"PS1='ready '\n{script.stdout}", "utf-8")
        self._ours, theirs = pty.openpty()
        variables = {"HOME": str(home), "TERM": "xterm", "PATH": f"{home}:{os.environ['PATH']}"}
        (home / "weft").write_text("#!/bin/sh\n", "utf-8")  # completing needs only the script
        (home / "weft").chmod(0o755)
        self._child = subprocess.Popen(
            [shell, "-i"], stdin=theirs, stdout=theirs, stderr=theirs, env=variables, cwd=home,
            start_new_session=True,
        )  # fmt: skip
        os.close(theirs)

    def type(self, keys: str, wanted: str) -> None:
        """Type, and wait until the shell shows what is wanted."""
        os.write(self._ours, keys.encode())
        seen = b""
        while wanted.encode() not in seen:
            assert select.select([self._ours], [], [], 30)[0], seen
            seen += os.read(self._ours, 65536)

    def close(self) -> None:
        self._child.kill()
        self._child.wait()
        os.close(self._ours)


@pytest.mark.parametrize("name", START_FILE)
def test_a_shell_completes_commands_subcommands_and_options(name: str, tmp_path: Path) -> None:
    shell = ShellAtTerminal(name, tmp_path)
    try:
        shell.type("", "ready")
        shell.type("weft sess\t", "ions")
        shell.type("ren\t", "ame")
        shell.type("\x15weft memory search --mo\t", "de")
        shell.type("\x15weft \t\t", "doctor")
    finally:
        shell.close()


def test_fish_completes_them_too(tmp_path: Path) -> None:
    if shutil.which("fish") is None:
        pytest.skip("fish is not installed here")
    (tmp_path / "weft.fish").write_text(run_weft(environ(tmp_path), "completion", "fish").stdout, "utf-8")
    lines = ("weft sess", "weft sessions ren", "weft memory search --mo")
    command = "; ".join(["source weft.fish", *(f"complete -C '{line}'" for line in lines)])

    done = subprocess.run(
        ["fish", "-c", command],
        env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]},
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.stdout.split() == ["sessions", "rename", "--mode"]


def test_every_command_is_in_every_script(tmp_path: Path) -> None:
    for name in (*START_FILE, "fish"):
        script = run_weft(environ(tmp_path), "completion", name).stdout
        assert [command for command in COMMANDS if command not in script] == []
        assert "sessions rename" in script
        assert sys.executable not in script, "the script works wherever weft is"


def test_an_unknown_shell_is_a_wrong_call(tmp_path: Path) -> None:
    done = run_weft(environ(tmp_path), "completion", "tcsh")

    assert (done.returncode, done.stdout) == (2, "")
    assert "bash" in done.stderr
