"""A new home: what `weft init` makes says nothing to a model until it is changed, and is private."""

import hashlib
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
