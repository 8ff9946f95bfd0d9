"""`weft instructions` as a process."""

import json
from pathlib import Path

import pytest

from programs import environ, run_weft


def test_instructions_are_added_listed_and_removed_by_hand(tmp_path: Path) -> None:
    env = environ(tmp_path)
    added = run_weft(env, "instructions", "add", "Answer in Spanish.")
    run_weft(env, "instructions", "add", "Use km.", "--person", "telegram:7")
    listed = run_weft(env, "instructions", "list")
    rows = json.loads(run_weft(env, "instructions", "list", "--json", "--person", "telegram:7").stdout)
    removed = run_weft(env, "instructions", "remove", "1")
    by_id = run_weft(env, "instructions", "remove", rows[0]["id"][:8], "--person", "telegram:7")

    assert added.stdout.startswith("From now on: Answer in Spanish.  ")
    assert listed.stdout.startswith("  1  Answer in Spanish.  pinned 20")
    assert "Use km" not in listed.stdout
    assert [(row["number"], row["text"], row["pinned"], row["session"]) for row in rows] == [
        (1, "Use km.", True, None)
    ]
    assert removed.stdout == "Removed: Answer in Spanish.\n"
    assert by_id.stdout == "Removed: Use km.\n"
    assert run_weft(env, "instructions", "list").stdout.startswith("There are none yet")


def test_an_instruction_of_two_lines_is_listed_on_one(tmp_path: Path) -> None:
    env = environ(tmp_path)
    added = run_weft(env, "instructions", "add", "Answer in Spanish.\nUse km.")
    listed = run_weft(env, "instructions", "list")
    [row] = json.loads(run_weft(env, "instructions", "list", "--json").stdout)
    removed = run_weft(env, "instructions", "remove", "1")

    assert added.stdout.startswith("From now on: Answer in Spanish. Use km.  ")
    assert listed.stdout.startswith("  1  Answer in Spanish. Use km.  pinned 20")
    assert row["text"] == "Answer in Spanish.\nUse km."
    assert removed.stdout == "Removed: Answer in Spanish. Use km.\n"


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (("remove", "7"), 2, "There is no standing instruction '7'"),
        (("remove", ""), 2, "There is no standing instruction ''"),
        (("add", " "), 2, "The instruction is empty: say what to do from now on."),
        (("add", "word " * 2100), 1, "2,000 is the most: shorten it"),
        (("list", "--person", "ownr"), 2, "Nobody is called 'ownr': did you mean 'owner'?"),
    ],
)
def test_a_wrong_call_is_one_sentence(tmp_path: Path, args: tuple[str, ...], code: int, words: str) -> None:
    done = run_weft(environ(tmp_path), "instructions", *args)

    assert (done.returncode, done.stdout) == (code, "")
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1
