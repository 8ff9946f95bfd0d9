"""A database that cannot be written to: what is in it can be read, and Weft says that nothing is kept."""

import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from programs import environ, run_weft

# Root may write everywhere; without CAP_DAC_OVERRIDE (1), which is dropped here, permissions hold for it too.
PROGRAM = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(24, 1, 0, 0, 0)
os.execv(sys.executable, [sys.executable, "-m", "weft", *sys.argv[1:]])
"""
NOTE = "cannot be written to: it is read, and nothing new is kept."
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(params=["the file", "the file and its folder"])
def run(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Run]:
    """Run a command in a home with a block, a conversation and a database that cannot be written to."""
    home = tmp_path / "home"
    (home / "empty").mkdir(parents=True)
    (home / "config.toml").write_text('provider = "scripted"\n', "utf-8")
    run_weft(environ(home), "memory", "edit", "notes", "The boat is called Marlin.")
    command = [sys.executable, "-m", "weft", "chat"]
    subprocess.run(command, env=environ(home), input="Where is the Marlin?\n", text=True, check=True)
    (home / "weft.db").chmod(0o400)
    if request.param == "the file and its folder":
        home.chmod(0o500)

    def run(*args: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-c", PROGRAM, *args],
            env=environ(home),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    yield run
    home.chmod(0o700)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("ask", "hello"), "no model was asked"),
        (("memory", "list"), "notes"),
        (("memory", "show", "notes"), "Marlin"),
        (("sessions", "list"), "terminal chat"),
        (("search", "Marlin"), "Where is the Marlin?"),
        (("context", "hello"), "The boat is called Marlin."),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else "",
)
def test_what_is_kept_can_be_read_and_one_line_says_that_nothing_is_kept(
    run: Run, args: tuple[str, ...], words: str
) -> None:
    done = run(*args)

    assert done.returncode == 0, done.stderr
    assert words in done.stdout
    assert done.stderr.count(NOTE) == 1
    assert done.stderr.count("\n") == 1


def test_a_backup_can_be_made_and_holds_everything(run: Run, tmp_path: Path) -> None:
    done = run("backup", str(tmp_path / "copy.db"))

    assert done.returncode == 0, done.stderr
    with closing(sqlite3.connect(tmp_path / "copy.db")) as copy:
        assert copy.execute("select count(*) from messages").fetchone() == (2,)


def test_a_conversation_says_what_to_do_instead(run: Run) -> None:
    done = run("chat")

    assert done.returncode == 1
    assert "`weft doctor` says how to make the database writable" in done.stderr
    assert "`weft ask` answers without keeping anything" in done.stderr


def test_everything_can_be_exported(run: Run, tmp_path: Path) -> None:
    done = run("export", str(tmp_path / "text"), "--json")

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["messages"] == 2


def test_a_change_is_refused_in_one_sentence(run: Run) -> None:
    done = run("memory", "edit", "notes", "gone")

    assert done.returncode == 1
    assert "cannot be written to: check its permissions" in done.stderr
    assert "Traceback" not in done.stderr


def test_doctor_says_how_to_make_it_writable(run: Run) -> None:
    done = run("doctor", "--json")

    remedies = [row["remedy"] for row in json.loads(done.stdout) if "cannot be written to" in row["what"]]
    assert len(remedies) == 1
    assert "chmod u+w" in remedies[0]
    assert "restore" not in done.stdout


def test_the_server_says_that_the_database_is_in_the_way(run: Run) -> None:
    done = run("serve", "--port", "0")

    assert done.returncode == 1
    assert "weft.db cannot be written to" in done.stderr or "home cannot be written to" in done.stderr
    assert "The output" not in done.stderr
