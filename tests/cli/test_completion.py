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
from weft.providers.choose import NAMES
from weft.types.recipe import packaged

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
            seen += os.read(self._ours, 65536).replace(b"\a", b"")  # a bell: nothing fits

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


@pytest.mark.parametrize("name", START_FILE)
def test_a_shell_completes_values_and_files_only_where_one_fits(name: str, tmp_path: Path) -> None:
    (tmp_path / "bananas.txt").write_text("x", "utf-8")
    shell = ShellAtTerminal(name, tmp_path)
    try:
        shell.type("", "ready")
        shell.type("weft completion z\t", "sh")
        shell.type("\x15weft completion \t\t", "fish")
        shell.type("\x15weft tools enable fe\t", "tch")
        shell.type("\x15weft docs gloss\t", "ary")
        shell.type("\x15weft recipes show mini\t", "claw")
        shell.type("\x15weft ask -p scr\t", "ipted")
        shell.type("\x15weft chat --provider ant\t", "hropic")
        shell.type("\x15weft ask hello -r om\t", "ega")
        shell.type("\x15weft ask -f ban\t", "anas.txt")
        shell.type("\x15weft recipes show ban\t", "anas.txt")
        shell.type("\x15weft sessions export abc ban\t", "anas.txt")
        shell.type("\x15weft docs ban\tX", "banX")
        shell.type("\x15weft sessions export ban\tX", "banX")
    finally:
        shell.close()


def fish(home: Path, *lines: str) -> list[list[str]]:
    """Return what fish offers at the end of each line."""
    if shutil.which("fish") is None:
        pytest.skip("fish is not installed here")
    (home / "weft.fish").write_text(run_weft(environ(home), "completion", "fish").stdout, "utf-8")
    command = "; echo ==; ".join(["source weft.fish", *(f"complete -C '{line}'" for line in lines)])
    done = subprocess.run(
        ["fish", "-c", command],
        env={"HOME": str(home), "PATH": os.environ["PATH"]},
        cwd=home,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stderr == ""
    return [part.split() for part in done.stdout.split("==")[1:]]


def test_fish_completes_them_too(tmp_path: Path) -> None:
    (tmp_path / "bananas.txt").write_text("x", "utf-8")
    offered = {
        "weft sess": ["sessions"],
        "weft sessions ren": ["rename"],
        "weft memory search --mo": ["--mode"],
        "weft completion ": ["bash", "fish", "zsh"],
        "weft tools enable ": ["fetch", "files"],
        "weft docs gloss": ["glossary"],
        "weft recipes show ": sorted(packaged()),
        "weft ask -p ": sorted(NAMES),
        "weft ask hello -r om": ["omega"],
        "weft ask -f ban": ["bananas.txt"],
        "weft docs ban": [],
        "weft ask ban": [],
    }

    assert fish(tmp_path, *offered) == list(offered.values())


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
