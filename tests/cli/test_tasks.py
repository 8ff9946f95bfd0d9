"""`weft tasks` and `weft pair` as processes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"WEFT_HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "PYTHONUTF8": "1", "TZ": "Europe/Lisbon"}


def weft(environ: dict[str, str], *args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "weft", *args]
    return subprocess.run(command, capture_output=True, text=True, env=environ, timeout=60, check=False)


def test_tasks_are_added_listed_changed_and_cancelled_by_hand(environ: dict[str, str]) -> None:
    added = weft(environ, "tasks", "add", "call Clara", "--due", "2030-07-01 09:00", "--repeat", "weekly")
    task_id = added.stdout.split()[-1]

    listed = json.loads(weft(environ, "tasks", "list", "--json").stdout)
    assert [(task["text"], task["due"], task["repeat"]) for task in listed] == [
        ("call Clara", "2030-07-01 09:00:00+01:00", "weekly")
    ]
    assert "2030-07-02" in weft(environ, "tasks", "change", task_id, "--due", "2030-07-02 09:00").stdout
    assert weft(environ, "tasks", "cancel", task_id).stdout == f"cancelled {task_id}\n"
    assert weft(environ, "tasks", "list").stdout == "Nothing is pending.\n"


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (("tasks", "add", "x", "--due", "soon"), 2, "write it as YYYY-MM-DD HH:MM"),
        (("tasks", "add", "x", "--repeat", "dayly"), 2, "did you mean 'daily'"),
        (("tasks", "cancel", "zzz"), 2, "No task of yours begins with 'zzz'"),
        (("pair", "NOCODE"), 2, "No one waits with this code"),
    ],
)
def test_a_wrong_call_is_one_sentence(
    environ: dict[str, str], args: tuple[str, ...], code: int, words: str
) -> None:
    done = weft(environ, *args)

    assert (done.returncode, done.stdout) == (code, "")
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_who_is_in_is_listed(environ: dict[str, str]) -> None:
    assert weft(environ, "pair").stdout == "Nobody was let in yet.\n"
    assert weft(environ, "pair", "--json").stdout == "[]\n"
    assert weft(environ, "pair", "--denied").stdout == "Nobody was turned away.\n"
    assert weft(environ, "pair", "--remove", "telegram:7").stdout == "telegram:7 was not in.\n"


def test_a_time_zone_that_is_not_there_is_refused_with_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('time_zone = "Europe/Lisabon"\n', "utf-8")

    done = weft({"WEFT_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}, "tasks", "list")

    assert done.returncode == 2
    assert done.stderr == "weft: There is no time zone 'Europe/Lisabon': did you mean 'Europe/Lisbon'?\n"


def test_a_machine_with_a_strange_time_zone_has_one_all_the_same(tmp_path: Path) -> None:
    environ = {"WEFT_HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "TZ": "<+03>-3"}

    assert weft(environ, "tasks", "add", "tea", "--due", "2036-01-01 09:00").returncode == 0
