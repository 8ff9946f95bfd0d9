"""`weft tools`: off until it is switched on, and the settings keep their comments."""

import json
from pathlib import Path

import pytest

from programs import environ, run_weft

SETTINGS = (
    '# mine\nrecipe = "weft"  # the best\n\n[tools]\nmax_chars = 900 # little\n\n[skills]\n# none yet\n'
)


def listed(home: Path) -> dict[str, bool]:
    rows = json.loads(run_weft(environ(home), "tools", "list", "--json").stdout)
    return {row["name"]: row["enabled"] for row in rows}


@pytest.mark.parametrize("before", [None, SETTINGS], ids=["no file", "a file with comments"])
def test_a_tool_is_enabled_and_disabled_and_all_else_stays(tmp_path: Path, before: str | None) -> None:
    home, docs = tmp_path / "home", tmp_path / "docs"
    home.mkdir()
    docs.mkdir()
    if before is not None:
        (home / "config.toml").write_text(before, "utf-8")

    assert listed(home) == {"files": False, "fetch": False}
    for _ in range(2):
        assert run_weft(environ(home), "tools", "enable", "files", "--in", str(docs)).returncode == 0
    assert run_weft(environ(home), "tools", "enable", "fetch").returncode == 0
    assert listed(home) == {"files": True, "fetch": True}
    lines = run_weft(environ(home), "tools", "list").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["files", "in", "fetch"]
    assert str(docs) in lines[1]
    assert run_weft(environ(home), "tools", "disable", "files").returncode == 0
    assert listed(home) == {"files": False, "fetch": True}

    text = (home / "config.toml").read_text("utf-8")
    for line in (before or "").splitlines():
        assert line in text.splitlines()
    assert text.count(str(docs)) == 1


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (("enable", "file"), "did you mean 'files'?"),
        (("disable", "shell"), "known are fetch, files."),
        (("enable", "files"), "`weft tools enable files --in DIR`"),
        (("enable", "files", "--in", "nowhere"), "There is no folder"),
        (("enable", "fetch", "--in", "."), "leave `--in` out"),
    ],
)
def test_a_wrong_call_is_refused_and_changes_nothing(
    tmp_path: Path, args: tuple[str, ...], sentence: str
) -> None:
    done = run_weft(environ(tmp_path), "tools", *args)

    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert sentence in done.stderr
    assert not (tmp_path / "config.toml").exists()
