"""`weft backup` and `weft restore` as a person types them."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import apsw
import pytest

import weft
from programs import environ


def _weft(home: Path, *args: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "weft", *args],
        capture_output=True,
        text=True,
        env=environ(home),
        timeout=60,
        check=False,
    )


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Where `weft` keeps everything, with one message in it."""

    async def fill() -> None:
        async with await weft.open(tmp_path / "home" / "weft.db") as store:
            session = await store.sessions.new("a", "b", "c", session_id="talk")
            await store.messages.append(session.id, weft.Message(role="user", content="Ahoy"))

    asyncio.run(fill())
    return tmp_path / "home"


def _messages(path: Path) -> list[str]:
    async def read() -> list[str]:
        async with await weft.open(path) as store:
            return [message.content for message in await store.messages.all("talk")]

    return asyncio.run(read())


def test_a_backup_and_a_restore_and_what_they_say(home: Path, tmp_path: Path) -> None:
    made = _weft(home, "backup", str(tmp_path / "copy.db"))
    assert (made.returncode, made.stderr) == (0, "")
    assert f"{tmp_path / 'copy.db'} is a checked copy" in made.stdout
    _weft(home, "memory", "edit", "boat", "Marlin")

    restored = _weft(home, "restore", str(tmp_path / "copy.db"), "--json")

    assert (restored.returncode, restored.stderr) == (0, "")
    places = json.loads(restored.stdout)
    assert places["database"] == str(home / "weft.db")
    assert _messages(home / "weft.db") == ["Ahoy"]
    assert _weft(home, "memory", "show", "boat").returncode != 0
    again = _weft(home, "restore", places["old"])
    assert "The database that was there before is " in again.stdout
    assert _weft(home, "memory", "show", "boat").stdout == "Marlin\n"


def test_of_many_backups_in_a_folder_the_newest_stay_and_other_files_too(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    folder.mkdir()
    others = {"weft-old.db", "weft-20200101-000000.db", "notes.txt"}
    for name in others:
        (folder / name).write_text("mine", "utf-8")
    (folder / "weft-20200101-000000-000000.db").write_text("ours, the oldest", "utf-8")

    reports = [json.loads(_weft(home, "backup", "--keep", "2", str(folder), "--json").stdout) for _ in "123"]

    ours = sorted(set(os.listdir(folder)) - others)
    assert others <= set(os.listdir(folder))
    assert ours == [Path(report["path"]).name for report in reports[1:]]
    assert [len(report["removed"]) for report in reports] == [0, 1, 1]
    assert reports[1]["removed"] == [str(folder / "weft-20200101-000000-000000.db")]
    assert _messages(Path(reports[2]["path"])) == ["Ahoy"]


@contextmanager
def _serving(home: Path) -> Iterator[None]:
    """Run `weft serve` from the moment when it is open."""
    (home / "config.toml").write_text('provider = "scripted"\n[http]\nport = 0\n', "utf-8")
    server = subprocess.Popen(
        [sys.executable, "-m", "weft", "serve"],
        env=environ(home),
        stderr=subprocess.PIPE,
        text=True,
    )
    assert server.stderr is not None
    try:
        assert any("http://127.0.0.1:" in line for line in server.stderr), "it ended before it was open"
        yield
    finally:
        server.terminate()
        server.wait(60)
        server.stderr.close()


def test_while_weft_serve_runs_a_backup_is_made_and_a_restore_is_refused(home: Path, tmp_path: Path) -> None:
    with _serving(home):
        made = _weft(home, "backup", str(tmp_path / "copy.db"))
        refused = _weft(home, "restore", str(tmp_path / "copy.db"))
    restored = _weft(home, "restore", str(tmp_path / "copy.db"))

    assert (made.returncode, made.stderr) == (0, "")
    assert _messages(tmp_path / "copy.db") == ["Ahoy"]
    _is_refused(refused, 1, "is open in a program: stop `weft serve`")
    assert (restored.returncode, restored.stderr) == (0, "")


def _is_refused(done: "subprocess.CompletedProcess[str]", code: int, sentence: str) -> None:
    assert (done.returncode, done.stdout) == (code, "")
    assert len(done.stderr.strip().splitlines()) == 1
    assert sentence in done.stderr


def test_wrong_places_are_refused_in_one_sentence(home: Path, tmp_path: Path) -> None:
    (tmp_path / "there").write_text("mine", "utf-8")

    _is_refused(_weft(home, "backup", str(tmp_path / "there")), 2, "overwrites nothing: name a new file")
    _is_refused(_weft(home, "backup", str(tmp_path)), 2, "is a folder: name a new file in it, or add `--keep")
    _is_refused(_weft(home, "backup", "--keep", "3", str(tmp_path / "there")), 2, "needs a folder")
    _is_refused(_weft(tmp_path / "new", "backup", str(tmp_path / "x")), 1, "nothing to back up yet")
    _is_refused(_weft(home, "backup", "/proc/no/such.db"), 1, "cannot be used")
    _is_refused(_weft(home, "restore", str(tmp_path / "no.db")), 2, "name a file that `weft backup` wrote")
    _is_refused(_weft(home, "restore", str(tmp_path / "there")), 1, "not a Weft store")


def _findings(home: Path) -> list[dict[str, Any]]:
    findings = json.loads(_weft(home, "doctor", "--json").stdout)
    return [finding for finding in findings if finding["what"].startswith(("there is no b", "the newest b"))]


def test_the_doctor_notes_a_backup_that_is_missing_or_old(home: Path, tmp_path: Path) -> None:
    (missing,) = _findings(home)
    _weft(home, "backup", str(tmp_path / "copy.db"))
    (fresh,) = _findings(home)
    db = apsw.Connection(str(home / "weft.db"))
    db.execute("update backups set at = ?", ((datetime.now(UTC) - timedelta(days=8)).timestamp(),))
    db.close()
    (old,) = _findings(home)

    assert (missing["level"], missing["what"]) == ("note", "there is no backup yet")
    assert "weft backup PATH" in missing["remedy"]
    assert (fresh["level"], fresh["remedy"]) == ("ok", "")
    assert str(tmp_path / "copy.db") in fresh["what"]
    assert old["level"] == "note"
    assert "more than 7 days old" in old["what"]


def test_the_doctor_asks_for_no_backup_of_nothing(tmp_path: Path) -> None:
    _weft(tmp_path, "memory", "edit", "boat", "Marlin")

    assert _findings(tmp_path) == []
