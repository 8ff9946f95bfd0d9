"""`weft memory` as a person types it."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Done = subprocess.CompletedProcess[str]


@pytest.fixture
def memory(tmp_path: Path) -> Callable[..., Done]:
    def run(*args: str) -> Done:
        return subprocess.run(
            [sys.executable, "-m", "weft", "memory", *args],
            capture_output=True,
            text=True,
            env={"WEFT_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
            timeout=60,
            check=False,
        )

    return run


def test_a_block_is_edited_looked_at_and_taken_back(memory: Callable[..., Done]) -> None:
    assert memory("edit", "notes", "The boat is called Marlin.").returncode == 0
    assert memory("append", "notes", " It is blue.").returncode == 0
    assert memory("replace", "notes", "blue", "red").returncode == 0
    assert memory("show", "notes").stdout == "The boat is called Marlin. It is red.\n"

    versions = json.loads(memory("history", "notes", "--json").stdout)
    first_text = str(versions[1]["version"])

    assert memory("at", "notes", first_text).stdout == "The boat is called Marlin.\n"
    assert "+The boat is called Marlin. It is red." in memory("diff", "notes", first_text).stdout
    assert memory("undo", "notes").returncode == 0
    assert memory("show", "notes").stdout == "The boat is called Marlin. It is blue.\n"
    assert memory("redo", "notes").returncode == 0
    assert memory("show", "notes").stdout == "The boat is called Marlin. It is red.\n"


def test_blocks_are_listed_shared_pinned_and_found(memory: Callable[..., Done]) -> None:
    memory("edit", "team", "Clara brings the tanks.", "--type", "core")
    note = memory("archive", "The tanks hold 12 litres.").stdout.strip()
    memory("share", "team", "rose", "--permission", "Append")
    memory("pin", "team", "--off")

    (block,) = json.loads(memory("list", "--json").stdout)
    (shared,) = json.loads(memory("list", "--agent", "rose", "--json").stdout)
    found = json.loads(memory("search", "tanks", "--json").stdout)

    assert (block["label"], block["type"], block["pinned"]) == ("team", "core", False)
    assert (shared["permission"], shared["shared_from"]) == ("Append", "weft")
    assert {hit["source"] for hit in found} == {"block", "archival"}
    assert note in {hit["id"] for hit in found}
    assert memory("unshare", "team", "rose").returncode == 0
    assert json.loads(memory("list", "--agent", "rose", "--json").stdout) == []
    assert "team" in memory("list").stdout


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        (("show", "gone"), 1, "no block 'gone'"),
        (("undo", "gone"), 1, "no block 'gone'"),
        (("at", "gone", "1"), 1, "no block 'gone'"),
        (("share", "x", "y", "--permission", "ReadWrit"), 2, "did you mean 'ReadWrite'"),
        (("archive", "  "), 1, "empty"),
    ],
)
def test_what_is_wrong_is_one_sentence(
    memory: Callable[..., Done], args: tuple[str, ...], code: int, says: str
) -> None:
    done = memory(*args)

    assert (done.returncode, done.stdout) == (code, "")
    assert says in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
