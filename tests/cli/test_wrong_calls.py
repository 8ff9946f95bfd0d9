"""Wrong calls: exit code 2, one sentence on stderr, and the remedy helps."""

import json
from pathlib import Path

import pytest

from programs import environ, run_weft


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (("memory", "show", "nope"), "`weft memory list` shows them."),
        (("memory", "undo", "nope"), "check its label."),
        (("memory", "delete", "nope"), "`weft memory list` shows them."),
        (("memory", "delete", "notes"), "add --yes if that is what you want."),
        (("sessions", "delete", "nope"), "There is no session 'nope'"),
        (("ask", "-f", "/", "hi"), "'/' is a folder: attach the files in it that you need."),
        (("memory", "unarchive", "nope"), "There is no note"),
        (("memory", "forget", "terminal:owner", "nope"), "Nothing is known"),
        (("memory", "share", "notes", "weft"), "name somebody else."),
        (("memory", "limit", "notes", "3"), "has 10 characters: shorten it first."),
        (("memory", "facts", ""), "Say whose facts"),
        (("memory", "search", " "), "QUERY is empty"),
        (("search", ""), "QUERY is empty: write some text there."),
        (("search", "boat", "--since", ""), "`--since` is empty: give it a value, or leave it out."),
        (("search", "boat", "--until", " "), "`--until` is empty"),
        (("search", "boat", "--who", ""), "`--who` is empty"),
        (("search", "boat", "--in", ""), "`--in` is empty"),
        (("chat", "-s", ""), "`--session` is empty"),
        (("turns", "why", "1", ""), "TEXT is empty"),
        (("recall", "setup", ""), "NAME is empty: give it a value, or leave it out."),
        (("tasks", "cancel", "zzz"), "No task of yours begins with 'zzz'"),
        (("tasks", "add", " "), "The task is empty"),
        (("tasks", "add", "sail", "--for", "bogus"), "'bogus' is nobody"),
        (("pair", "nope"), "No one waits with this code"),
        (("import", "/nonexist"), "/nonexist is no folder that Weft exported"),
        (("export", "/dev/null"), "There is something in /dev/null already"),
        (("export", "/"), "There is something in / already"),
        (("sessions", "import", "/nonexist"), "/nonexist cannot be read: No such file or directory."),
        (("recipes", "validate", "."), "is a folder: name the TOML file of a recipe."),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_wrong_call_is_refused_with_2_and_a_sentence(
    tmp_path: Path, args: tuple[str, ...], sentence: str
) -> None:
    run_weft(environ(tmp_path), "memory", "edit", "notes", "ten chars.")

    done = run_weft(environ(tmp_path), *args)

    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert sentence in done.stderr


def test_a_label_has_one_line(tmp_path: Path) -> None:
    done = run_weft(environ(tmp_path), "memory", "edit", "a\nb", "text")

    assert done.returncode == 2
    assert "a label of one line" in done.stderr


def test_a_file_that_is_no_session_is_called_that(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("# Weft\n", "utf-8")

    done = run_weft(environ(tmp_path), "sessions", "import", str(tmp_path / "README.md"))

    assert done.returncode == 2
    assert "README is no session file: `weft sessions export` writes one." in done.stderr


def test_a_search_says_when_and_where_it_was_said(tmp_path: Path) -> None:
    message = {"role": "user", "content": "The Marlin", "timestamp": "2026-11-03T10:00:00+00:00"}
    (tmp_path / "boats.json").write_text(json.dumps({"id": "boats", "messages": [message]}), "utf-8")
    run_weft(environ(tmp_path), "sessions", "import", str(tmp_path / "boats.json"))

    done = run_weft(environ(tmp_path), "search", "marlin")

    assert "2026-11-03" in done.stdout
    assert "boats" in done.stdout
