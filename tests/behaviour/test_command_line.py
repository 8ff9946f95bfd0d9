"""The program as a person uses it: real processes, good input and bad."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import programs
from weft.cli.init import starter_files
from weft.compose import open as open_store
from weft.testing import LoopbackVendor
from weft.wire import PROVIDERS, violations

from samples import write_workspace

Done = subprocess.CompletedProcess[str]
Weft = Callable[..., Done]


@pytest.fixture
def weft(tmp_path: Path) -> Weft:
    """Run the program with a home of its own; `stdin` is what comes through the pipe."""

    def run(*args: str, stdin: str | bytes = "", home: Path | None = None, **environ: str) -> Done:
        data = stdin if isinstance(stdin, bytes) else stdin.encode("utf-8", "surrogatepass")
        done = subprocess.run(
            [sys.executable, "-m", "weft", *args],
            input=data,
            capture_output=True,
            env=programs.environ(home or tmp_path / "home", OLLAMA_HOST="127.0.0.1:9") | environ,
            cwd=tmp_path,
            timeout=120,
            check=False,
        )
        return subprocess.CompletedProcess(
            done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
        )

    return run


def assert_one_sentence(done: Done, code: int, *words: str) -> None:
    """An error is one line on stderr that says what is wrong, nothing on stdout, no traceback."""
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in done.stderr


def test_a_question_is_answered_on_stdout(weft: Weft) -> None:
    done = weft("ask", "--provider", "scripted", "Hello?")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "This reply was scripted: no model was asked.\n"


def test_a_question_can_come_through_a_pipe_alone_or_after_words(weft: Weft) -> None:
    alone = weft("context", "--recipe", "omega", "--json", stdin="from the pipe\n")
    behind = weft("context", "--recipe", "omega", "--json", "Summarise this:", "-", stdin="the text\n")

    assert json.loads(alone.stdout)["current_message"] == "from the pipe"
    assert json.loads(behind.stdout)["current_message"] == "Summarise this: \n\nthe text"


def test_ask_as_json_holds_the_reply_and_its_receipt(weft: Weft) -> None:
    done = weft("ask", "--provider", "scripted", "--json", "Hello?")

    reply = json.loads(done.stdout)
    assert reply["text"].startswith("This reply was scripted")
    assert reply["receipt"]["provider"] == "scripted"
    assert reply["receipt"]["total_tokens"] == sum(reply["receipt"]["by_layer"].values())


def test_context_prints_the_request_that_a_provider_would_get(weft: Weft) -> None:
    for provider in PROVIDERS:
        payload = json.loads(
            weft("context", "-r", "omega", "-p", provider, "-m", "some-model", "Hi there").stdout
        )

        assert violations(provider, payload) == []
        assert payload["model"] == "some-model"
        assert "Hi there" in json.dumps(payload)


def test_context_prints_each_form(weft: Weft, tmp_path: Path) -> None:
    workspace = str(write_workspace(tmp_path / "ws"))
    shown = {
        form: weft("context", "-r", "miniclaw", "-w", workspace, "--form", form, "Hi").stdout
        for form in ("single", "parts", "messages")
    }

    assert shown["single"].startswith("[System]\nYou are Iris")
    assert shown["parts"].startswith("--- system: instructions ---\nYou are Iris")
    assert shown["messages"].count("--- system ---") == 5
    assert all(text.rstrip().endswith("Hi") for text in shown.values())


def test_explain_shows_the_receipt_and_with_json_adds_it(weft: Weft, tmp_path: Path) -> None:
    workspace = str(write_workspace(tmp_path / "ws"))

    table = weft("context", "-w", workspace, "-p", "scripted", "--explain", "Hi").stdout
    plain = json.loads(weft("context", "-w", workspace, "-p", "scripted", "--json", "Hi").stdout)
    explained = json.loads(
        weft("context", "-w", workspace, "-p", "scripted", "--explain", "--json", "Hi").stdout
    )

    assert "receipt" in table
    assert "instructions" in table
    assert "would ask scripted (scripted): it was asked for" in table
    assert "receipt" not in plain
    assert plain["sections"]
    assert explained["receipt"]["recipe"] == "weft"


def test_the_receipt_can_be_written_as_a_picture(weft: Weft, tmp_path: Path) -> None:
    done = weft("context", "-p", "scripted", "--svg", "receipt.svg", "--explain", "Hi")

    assert done.returncode == 0
    assert (tmp_path / "receipt.svg").read_text("utf-8").startswith("<svg")


def test_init_makes_a_workspace_and_never_overwrites(weft: Weft, tmp_path: Path) -> None:
    assert weft("init").returncode == 0
    soul = tmp_path / "home" / "workspace" / "SOUL.md"
    soul.write_text("Mine.", "utf-8")

    again = weft("init")
    forced = weft("init", "--force")

    assert soul.read_text("utf-8") == "Mine."
    assert "0 files made, 7 kept" in again.stdout
    assert "0 files made, 7 kept" in forced.stdout
    assert weft("doctor").returncode == 0
    assert "Mine." in weft("context", "-p", "scripted", "Hi").stdout


def test_init_with_force_asks_about_each_file(weft: Weft, tmp_path: Path) -> None:
    weft("init", "-w", "ws")
    for name in ("SOUL.md", "USER.md"):
        (tmp_path / "ws" / name).write_text("Mine.", "utf-8")
    terminal, program_side = os.openpty()
    answers = "".join("y\n" if file.name == "SOUL.md" else "n\n" for file in starter_files())
    os.write(terminal, answers.encode())

    done = subprocess.run(
        [sys.executable, "-m", "weft", "init", "-w", "ws", "--force"],
        stdin=program_side,
        capture_output=True,
        cwd=tmp_path,
        env=programs.environ(tmp_path / "home"),
        timeout=60,
        check=False,
    )

    os.close(terminal)
    os.close(program_side)
    assert done.returncode == 0, done.stderr
    assert b"1 files made" in done.stdout
    assert (tmp_path / "ws" / "SOUL.md").read_text("utf-8") != "Mine."
    assert (tmp_path / "ws" / "USER.md").read_text("utf-8") == "Mine."


def test_the_receipt_and_the_doctor_say_who_answers_and_why_without_the_key(weft: Weft) -> None:
    with LoopbackVendor("openai", pages={"/models": {"data": [{"id": "gpt-5.6"}]}}) as server:
        environ = {"OPENAI_API_KEY": "sk-very-secret", "OPENAI_BASE_URL": server.url}
        shown = weft("context", "--explain", "Hi", **environ)
        checked = weft("doctor", **environ)

    for done in (shown, checked):
        assert done.returncode == 0
        assert "openai" in done.stdout
        assert "OPENAI_API_KEY is set" in done.stdout
        assert "secret" not in done.stdout + done.stderr


def test_doctor_gives_a_remedy_for_every_finding_that_is_not_well(weft: Weft, tmp_path: Path) -> None:
    weft("init")
    home = tmp_path / "home"
    (home / "config.toml").write_text('recipee = "x"\n', "utf-8")
    (home / "workspace" / "TOOLS.md").write_bytes(b"\x00\x01binary")
    (home / "workspace" / "skills" / "bad").mkdir()
    (home / "workspace" / "skills" / "bad" / "SKILL.md").write_text("---\nname: [\n---\n", "utf-8")
    (home / "workspace" / "skills" / "write-a-skill" / "tools.json").write_text("{", "utf-8")

    done = weft("doctor", "--json")

    findings = json.loads(done.stdout)
    told = " ".join(finding["what"] for finding in findings)
    assert done.returncode == 1
    assert "did you mean 'recipe'" in told
    assert "TOOLS.md is not text" in told
    assert "front matter" in told
    assert "'write-a-skill' is used without its tools" in told
    assert all(finding["remedy"] for finding in findings if finding["level"] != "ok")


def test_recipes_can_be_listed_shown_and_checked(weft: Weft, tmp_path: Path) -> None:
    names = [recipe["name"] for recipe in json.loads(weft("recipes", "list", "--json").stdout)]
    mine = weft("recipes", "show", "weft").stdout.replace('name = "weft"', 'name = "mine"')
    (tmp_path / "mine.toml").write_text(mine, "utf-8")
    (tmp_path / "typo.toml").write_text(mine.replace("unknown_role", "unknown_rol"), "utf-8")

    assert names == ["chai", "miniclaw", "omega", "pattern", "weft"]
    assert "valid mine" in weft("recipes", "validate", "mine.toml").stdout
    assert weft("ask", "-p", "scripted", "-r", "mine.toml", "Hi").returncode == 0
    assert_one_sentence(
        weft("recipes", "validate", "typo.toml"), 2, "unknown_rol", "did you mean 'unknown_role'"
    )


def test_skills_can_be_listed_shown_and_checked(weft: Weft, tmp_path: Path) -> None:
    workspace = write_workspace(tmp_path / "ws")

    listed = json.loads(weft("skills", "list", "-w", str(workspace), "--json").stdout)
    shown = weft("skills", "show", "tides", "-w", str(workspace))
    checked = weft("skills", "validate", str(workspace / "skills" / "tides"))

    assert [skill["name"] for skill in listed["skills"]] == ["packing", "tides"]
    assert "Read the tide table." in shown.stdout
    assert "warning" in checked.stdout
    assert "valid tides" in checked.stdout
    assert_one_sentence(weft("skills", "show", "tide", "-w", str(workspace)), 2, "did you mean 'tides'")


@pytest.mark.parametrize("words", [[], [""], ["  \n "], ["-"]])
def test_an_empty_message_is_refused(weft: Weft, words: list[str]) -> None:
    assert_one_sentence(weft("ask", "-p", "scripted", *words), 2, "The message is empty")


def test_a_message_of_ten_megabytes_is_refused_with_the_largest_part_named(weft: Weft) -> None:
    done = weft("ask", "-p", "scripted", "-", stdin="a b " * 2_500_000)

    assert_one_sentence(done, 1, "'message'", "context.max_tokens", "60000")


def test_nul_and_lone_surrogates_are_replaced_and_told(weft: Weft) -> None:
    done = weft("context", "-r", "omega", "--json", "-", stdin=b"a\0b \xed\xa0\x80 c")

    assert json.loads(done.stdout)["current_message"] == "a\ufffdb \ufffd\ufffd\ufffd c"
    assert "NUL" in done.stderr
    assert "not UTF-8" in done.stderr


def test_unknown_names_are_refused_with_the_nearest_one(weft: Weft) -> None:
    assert_one_sentence(weft("ask", "-p", "scripted", "-r", "omga", "Hi"), 2, "did you mean 'omega'")
    assert_one_sentence(weft("ask", "-p", "scriptd", "Hi"), 2, "did you mean 'scripted'")
    assert_one_sentence(weft("ask", "-p", "openai", "Hi"), 2, "openai needs a key", "OPENAI_API_KEY")
    assert_one_sentence(
        weft("ask", "-p", "claude_code", "Hi"), 1, "no command 'claude'", "install Claude Code"
    )
    assert_one_sentence(weft("recipes", "show", "chay"), 2, "did you mean 'chai'")
    unknown = weft("contxt", "Hi")
    assert unknown.returncode == 2
    assert "did you mean 'context'" in unknown.stderr


def test_broken_toml_is_named_with_its_line(weft: Weft, tmp_path: Path) -> None:
    (tmp_path / "broken.toml").write_text('name = "x"\nform = \n', "utf-8")
    (tmp_path / "home").mkdir()

    assert_one_sentence(weft("ask", "-p", "scripted", "-r", "broken.toml", "Hi"), 2, "broken.toml", "line 2")
    (tmp_path / "home" / "config.toml").write_text("[context\n", "utf-8")
    assert_one_sentence(weft("ask", "-p", "scripted", "Hi"), 2, "config.toml", "line 1")


def test_a_workspace_that_is_missing_or_a_file_is_refused(weft: Weft, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", "utf-8")

    assert_one_sentence(weft("ask", "-p", "scripted", "-w", "file", "Hi"), 2, "'file'", "not a directory")
    assert_one_sentence(weft("ask", "-p", "scripted", "-w", "gone", "Hi"), 2, "'gone'", "weft init")
    assert_one_sentence(weft("init", "-w", "file"), 2, "file")


def test_a_home_that_cannot_be_written_stops_init_but_not_a_question(weft: Weft, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", "utf-8")
    home = tmp_path / "file" / "home"

    assert_one_sentence(weft("init", home=home), 1, "cannot be written", "WEFT_HOME")
    assert weft("ask", "-p", "scripted", "Hi", home=home).returncode == 0
    assert (tmp_path / "file").read_text("utf-8") == "x"


def test_verbose_tells_what_was_decided(weft: Weft, tmp_path: Path) -> None:
    workspace = str(write_workspace(tmp_path / "ws"))

    done = weft("--verbose", "ask", "-p", "scripted", "-w", workspace, "Hi")

    assert "context built" in done.stderr
    assert done.stdout.startswith("This reply was scripted")


def test_the_demo_shows_an_answer_and_what_lost_its_place(weft: Weft, tmp_path: Path) -> None:
    done = weft("demo", "--provider", "scripted")

    assert done.returncode == 0, done.stderr
    assert "left out history: messages 1-" in " ".join(done.stdout.split())
    assert (tmp_path / ".demo" / "workspace" / "SOUL.md").exists()


def test_every_command_in_the_table_has_the_help_it_promises(weft: Weft) -> None:
    from weft.cli.main import COMMANDS

    listed = weft("--help").stdout
    for name, sentence in COMMANDS.items():
        assert name in listed
        assert sentence in " ".join(weft(name, "--help").stdout.split())


async def test_a_question_sees_what_is_known_of_who_types_and_omega_sees_nothing(
    weft: Weft, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    async with await open_store(home / "weft.db") as store:
        await store.facts.set("terminal:owner", "city", "Lisbon")
        await store.facts.set("terminal:another", "city", "Porto")

    shown = weft("context", "-p", "scripted", "Where do I live?", home=home)
    omega = weft("context", "-p", "scripted", "-r", "omega", "Where do I live?", home=home)

    assert "- city: Lisbon" in shown.stdout
    assert "Porto" not in shown.stdout
    assert omega.returncode == 0
    assert "Lisbon" not in omega.stdout
