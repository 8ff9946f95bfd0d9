"""A new home: what `weft init` makes says nothing to a model until it is changed, and is private."""

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from programs import environ, run_weft
from weft.cli.init import STARTER
from weft.workspace.files import PLACEHOLDERS

HINTS = ("USER.md", "TOOLS.md", "memory/MEMORY.md")


def seen(home: Path) -> str:
    done = run_weft(environ(home), "context", "-p", "scripted", "-r", "weft", "hello")
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", HINTS)
def test_a_starter_file_is_sent_once_somebody_has_changed_it(tmp_path: Path, name: str) -> None:
    run_weft(environ(tmp_path), "init")
    file = tmp_path / "workspace" / name
    hint = (STARTER / "workspace" / name).read_text("utf-8").splitlines()[0]

    assert "Write here" not in seen(tmp_path)
    assert "How to use tools" not in seen(tmp_path)
    file.write_text(f"{hint}\nAda lives in Lisbon.\n", "utf-8")
    assert "Ada lives in Lisbon." in seen(tmp_path)


@pytest.mark.parametrize("name", HINTS)
def test_every_file_with_a_hint_is_known_as_one(name: str) -> None:
    data = (STARTER / "workspace" / name).read_bytes()

    assert hashlib.sha256(data).hexdigest() in PLACEHOLDERS


def test_the_starter_skill_needs_no_tool_that_may_be_off() -> None:
    text = (STARTER / "workspace" / "skills" / "write-a-skill" / "SKILL.md").read_text("utf-8")

    assert "If you have the tool `write_file`" in text
    assert "Otherwise" in text
    assert "weft tools enable files" in text


def test_what_weft_writes_is_for_its_owner_alone(tmp_path: Path) -> None:
    """With a umask that lets everybody read and write everything."""
    home = tmp_path / "new" / "home"
    commands = [
        ["init"],
        ["chat", "-p", "scripted"],
        ["memory", "edit", "notes", "a boat"],
        ["tools", "enable", "fetch"],
        ["backup", str(home / "copies" / "one.db")],
        ["export", str(home / "text")],
    ]
    program = (
        "import os, sys; os.umask(0); os.execv(sys.executable, [sys.executable, '-m', 'weft', *sys.argv[1:]])"
    )

    for args in commands:
        done = subprocess.run(
            [sys.executable, "-c", program, *args],
            env=environ(home),
            input="hello\n",
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr

    loose = [str(path) for path in (tmp_path / "new").rglob("*") if path.stat().st_mode & 0o077]
    assert loose == []
    assert {path.name for path in home.iterdir()} >= {"config.toml", "weft.db", "workspace", "text", "copies"}


def test_doctor_notes_a_database_that_others_may_read_with_the_command(tmp_path: Path) -> None:
    run_weft(environ(tmp_path), "memory", "edit", "notes", "a boat")
    assert "chmod" not in run_weft(environ(tmp_path), "doctor").stdout

    (tmp_path / "weft.db").chmod(0o644)

    assert f"chmod 600 {tmp_path / 'weft.db'}" in run_weft(environ(tmp_path), "doctor").stdout
