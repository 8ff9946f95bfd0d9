"""`weft ask` and `weft context` under the recipe `omega`, run as a person runs them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import weft

OMEGA = (
    "You are OMEGA Ω, a personal AI assistant running on the user's own server. "
    "You are helpful, concise, and action-oriented."
)


def run(home: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    kept = {name: value for name, value in os.environ.items() if not name.startswith("WEFT_")}
    return subprocess.run(
        [sys.executable, "-m", "weft", *words],
        env={**kept, "WEFT_HOME": str(home), "PYTHONUTF8": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )


def ask(home: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    return run(home, "ask", "--recipe", "omega", "--provider", "scripted", *words)


def context(home: Path, *words: str) -> weft.Context:
    done = run(home, "context", "--recipe", "omega", "--provider", "scripted", "--json", *words)
    assert (done.returncode, done.stderr) == (0, "")
    return weft.Context.from_json(done.stdout)


def refused(done: "subprocess.CompletedProcess[str]") -> str:
    """The one line that a refused call leaves, and nothing else."""
    assert done.returncode == 2
    assert done.stdout == ""
    [line] = done.stderr.splitlines()
    assert "Traceback" not in line
    return line


def test_O16_O18_a_question_is_asked_in_a_one_shot_context(tmp_path: Path) -> None:
    shown = context(tmp_path, "Explain Rust ownership")

    assert shown.system_prompt == OMEGA
    assert list(shown.history) == []
    assert shown.current_message == "Explain Rust ownership"
    assert list(shown.mcp_servers) == []
    assert shown.model is None


def test_O15_O18_it_reads_as_the_one_shot_context_of_the_recipe(tmp_path: Path) -> None:
    shown = context(tmp_path, "Explain Rust ownership")

    one_shot = weft.Recipe.load("omega").one_shot("Explain Rust ownership")
    assert shown.to_prompt_string() == one_shot.to_prompt_string()
    assert shown.to_api_messages() == one_shot.to_api_messages()


def test_O8_O18_the_printed_json_has_servers_but_no_model_and_no_receipt(tmp_path: Path) -> None:
    done = run(tmp_path, "context", "--recipe", "omega", "--provider", "scripted", "--json", "hi")

    written = json.loads(done.stdout)
    assert written["mcp_servers"] == []
    assert "model" not in written
    assert "receipt" not in written
    assert [section["text"] for section in written["sections"]] == [OMEGA]


def test_O18_the_receipt_is_added_when_it_is_asked_for(tmp_path: Path) -> None:
    done = run(
        tmp_path, "context", "--recipe", "omega", "--provider", "scripted", "--explain", "--json", "hi"
    )

    written = json.loads(done.stdout)
    assert written["system_prompt"] == OMEGA
    layers = {item["layer"] for item in written["receipt"]["items"]}
    assert {"instructions", "message"} <= layers
    assert not layers & {"history", "facts", "summaries", "recall", "tasks"}


def test_O18_words_are_one_message(tmp_path: Path) -> None:
    assert context(tmp_path, "Explain", "Rust", "ownership").current_message == "Explain Rust ownership"


def test_O18_a_question_gets_an_answer(tmp_path: Path) -> None:
    done = ask(tmp_path, "Explain Rust ownership")

    assert done.returncode == 0
    assert done.stdout.strip()
    assert done.stderr == ""


def test_O18_a_question_leaves_no_history(tmp_path: Path) -> None:
    assert ask(tmp_path, "My cat is called Zerzura").returncode == 0

    again = ask(tmp_path, "--json", "What is my cat called?")

    layers = {item["layer"] for item in json.loads(again.stdout)["receipt"]["items"]}
    assert {"instructions", "message"} <= layers
    assert "history" not in layers
    assert list(context(tmp_path, "What is my cat called?").history) == []


def test_O18_a_question_is_no_history_of_the_next_one(tmp_path: Path) -> None:
    assert ask(tmp_path, "My cat is called Zerzura").returncode == 0

    shown = context(tmp_path, "What is my cat Zerzura called?")
    assert (shown.history, shown.system_prompt) == ((), OMEGA)


def test_O16_O18_files_of_a_workspace_do_not_change_the_prompt(tmp_path: Path) -> None:
    workspace = tmp_path / "place"
    workspace.mkdir()
    (workspace / "SOUL.md").write_text("I am somebody else.", "utf-8")
    (workspace / "AGENTS.md").write_text("Be verbose.", "utf-8")

    shown = context(tmp_path, "--workspace", str(workspace), "hi")

    assert shown.system_prompt == OMEGA


@pytest.mark.parametrize("words", [[], [""], ["   "]])
def test_O18_O47_an_empty_question_is_a_wrong_call(tmp_path: Path, words: list[str]) -> None:
    line = refused(ask(tmp_path, *words))

    assert "empty" in line


@pytest.mark.parametrize("name", ["omegaa", "nonsense"])
def test_O18_an_unknown_recipe_is_a_wrong_call_and_the_answer_leads_to_a_known_one(
    tmp_path: Path, name: str
) -> None:
    line = refused(run(tmp_path, "ask", "--recipe", name, "--provider", "scripted", "hi"))

    assert name in line
    assert "omega" in line.replace(name, "")


def test_O18_an_unknown_provider_is_a_wrong_call_that_names_the_known_ones(tmp_path: Path) -> None:
    line = refused(run(tmp_path, "ask", "--recipe", "omega", "--provider", "nobody", "hi"))

    assert "nobody" in line
    assert "scripted" in line


def test_O18_a_missing_workspace_is_a_wrong_call(tmp_path: Path) -> None:
    missing = tmp_path / "nowhere"

    line = refused(ask(tmp_path, "--workspace", str(missing), "hi"))

    assert str(missing) in line


def test_O18_a_file_as_workspace_is_a_wrong_call(tmp_path: Path) -> None:
    plain = tmp_path / "plain.txt"
    plain.write_text("not a folder", "utf-8")

    line = refused(ask(tmp_path, "--workspace", str(plain), "hi"))

    assert str(plain) in line


def test_O18_an_unknown_option_is_a_wrong_call(tmp_path: Path) -> None:
    done = ask(tmp_path, "--no-such-option", "hi")

    assert done.returncode == 2
    assert done.stdout == ""
    assert "--no-such-option" in done.stderr
    assert "Traceback" not in done.stderr
