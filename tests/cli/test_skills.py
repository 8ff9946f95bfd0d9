"""`weft skills try`: what a call of a skill's tool would run, and running it."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from programs import environ
from skill_programs import described

ARGS = [{"param": "tag", "kind": "flag", "flag": "--tag"}, {"param": "text", "kind": "positional"}]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace" / "skills" / "notes"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: notes\ndescription: Keeps notes.\n---\nUse it.", "utf-8")
    tools = described(ARGS, binary="echo", subcommand="")
    (folder / "tools.json").write_text(json.dumps(tools), "utf-8")
    plain = tmp_path / "workspace" / "skills" / "plain"
    plain.mkdir()
    (plain / "SKILL.md").write_text("---\nname: plain\ndescription: Only text.\n---\nRead.", "utf-8")
    return tmp_path


def tried(home: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "weft", "skills", *args],
        capture_output=True,
        text=True,
        env=environ(home) | {"SECRET_KEY": "hidden"},
        timeout=60,
        check=False,
    )


def test_the_command_is_shown_word_by_word_and_not_run(home: Path) -> None:
    done = tried(home, "try", "notes", "add_note", '{"text": "buy bread; rm -rf /", "tag": "-x"}')

    assert done.stdout.splitlines()[0] == "echo --tag=-x 'buy bread; rm -rf /'"
    assert str(home / "workspace") in done.stdout


def test_the_plan_is_there_as_json(home: Path) -> None:
    done = tried(home, "try", "notes", "add_note", '{"text": "--help"}', "--json")

    assert json.loads(done.stdout)["argv"] == ["echo", "--", "--help"]


def test_it_runs_when_it_is_told_to(home: Path) -> None:
    done = tried(home, "try", "notes", "add_note", '{"text": "$SECRET_KEY `id`"}', "--run")

    assert (done.returncode, done.stdout) == (0, "$SECRET_KEY `id`\n")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("nots", "add_note"), 2, "There is no skill 'nots': did you mean 'notes'?"),
        (("notes", "add_not"), 2, "There is no tool 'add_not': did you mean 'add_note'?"),
        (("notes", "add_note", "{"), 2, "The arguments are not JSON"),
        (("notes", "add_note", "[1]"), 2, "The arguments are not a JSON object"),
        (("notes", "add_note", "[" * 50_000), 2, "The arguments are nested too deeply"),
        (("notes", "add_note", "{}"), 2, "missing parameter: text"),
        (("plain", "add_note"), 2, "The skill has no tools"),
    ],
)
def test_a_wrong_call_is_one_sentence(home: Path, words: tuple[str, ...], code: int, said: str) -> None:
    done = tried(home, "try", *words)

    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_valid_skill_lists_its_tools_and_a_wrong_file_names_line_and_key(home: Path) -> None:
    folder = home / "workspace" / "skills" / "notes"
    assert "add_note: Add a note." in tried(home, "validate", str(folder)).stdout

    (folder / "tools.json").write_text('{\n "tools": [],\n "tolls": 1\n}', "utf-8")
    done = tried(home, "validate", str(folder))

    assert done.returncode == 2
    assert "tools.json" in done.stderr
    assert "'tolls'" in done.stderr


def test_what_cannot_work_is_told_before_it_is_called(home: Path) -> None:
    folder = home / "workspace" / "skills" / "notes"
    tools = described([{"param": "place"}], binary="echo", subcommand="")
    (folder / "tools.json").write_text(json.dumps({**tools, "allowlist": {"notes": ["add"]}}), "utf-8")

    done = tried(home, "validate", str(folder))

    assert done.returncode == 0
    assert "warning tool 'add_note': 'echo' is not on the allowlist" in done.stdout
    assert "warning tool 'add_note': its `parameters` do not tell the model of 'place'" in done.stdout


def test_names_of_skills_and_of_files_cannot_move_the_cursor(home: Path) -> None:
    skills = home / "workspace" / "skills"
    notes = '---\nname: "no\\e]0;x\\a"\ndescription: "\\e[31mred"\n---\n'
    (skills / "notes" / "SKILL.md").write_text(notes, "utf-8")
    (skills / "bro\x1b[2Jken").mkdir()
    (skills / "bro\x1b[2Jken" / "SKILL.md").write_text("---\nname: [\n---\n", "utf-8")

    for words in (("list",), ("validate", str(skills / "notes"))):
        done = tried(home, *words)
        assert done.returncode == 0
        assert "\\x1b[31mred" in done.stdout
        assert "\x1b" not in done.stdout + done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_who_is_ended_or_loses_the_terminal_leaves_no_program_behind(
    home: Path, number: signal.Signals
) -> None:
    told = home / "told"
    script = f"import os, time; open({str(told)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    tools = described([{"param": "text"}], binary="python3", subcommand="-c")
    (home / "config.toml").write_text("[skills]\nallow_scripts = true\n", "utf-8")
    (home / "workspace" / "skills" / "notes" / "tools.json").write_text(json.dumps(tools), "utf-8")
    command = [sys.executable, "-m", "weft", "skills", "try", "notes", "add_note", "--run"]
    environ = {"WEFT_HOME": str(home), "PATH": os.environ["PATH"]}

    with subprocess.Popen([*command, json.dumps({"text": script})], env=environ) as child:
        ends = time.monotonic() + 60
        while not (told.exists() and told.read_text()) and time.monotonic() < ends:
            time.sleep(0.05)
        child.send_signal(number)
        assert child.wait(timeout=30) == 128 + number

    with pytest.raises(ProcessLookupError):
        os.kill(int(told.read_text()), 0)
