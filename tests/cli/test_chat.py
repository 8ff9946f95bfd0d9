"""`weft chat` as a process: through a pipe, and at a terminal."""

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from programs import Terminal
from screens import lines_on_screen
from weft.testing import LoopbackVendor, Refusal

CONFIG = '[scripted]\nreplies = ["One.", "**Two**.", "Three."]\n'


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "config.toml").write_text(CONFIG, "utf-8")
    return {"WEFT_HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "TERM": "xterm", "PYTHONUTF8": "1"}


def talk(environ: dict[str, str], *args: str, stdin: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "weft", "chat", "-p", "scripted", *args],
        input=stdin,
        capture_output=True,
        text=True,
        env=environ,
        timeout=60,
        check=False,
    )


def test_a_conversation_goes_on_where_it_ended(environ: dict[str, str]) -> None:
    first = talk(environ, stdin="hello\nand?\n")
    second = talk(environ, stdin="/context\n")

    assert (first.returncode, first.stdout, first.stderr) == (0, "One.\n**Two**.\n", "")
    assert "messages 1-4" in second.stdout


def test_a_new_session_begins_empty(environ: dict[str, str]) -> None:
    talk(environ, stdin="hello\n")

    assert "messages" not in talk(environ, "--new", stdin="/context\n").stdout


def test_a_session_that_is_not_there_is_one_sentence(environ: dict[str, str]) -> None:
    done = talk(environ, "--session", "gone", stdin="hello\n")

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("weft: There is no session 'gone'")
    assert len(done.stderr.splitlines()) == 1


def test_an_answer_that_failed_is_told_on_stderr_and_by_the_exit_code(environ: dict[str, str]) -> None:
    done = talk(environ, stdin="one\ntwo\nthree\nfour\n")

    assert (done.returncode, done.stdout) == (1, "One.\n**Two**.\nThree.\n")
    assert done.stderr.startswith("weft: The script has no reply for request 4")


def test_what_is_not_utf8_is_replaced_in_a_pipe(environ: dict[str, str]) -> None:
    command = [sys.executable, "-m", "weft", "chat", "-p", "scripted"]
    strict = {**environ, "PYTHONIOENCODING": "utf-8:strict"}

    done = subprocess.run(
        command, input=b"caf\xe9\nmore", capture_output=True, env=strict, timeout=60, check=False
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, b"One.\n**Two**.\n", b"")


def test_a_chat_that_waits_in_a_pipe_ends_when_it_is_told_to(environ: dict[str, str]) -> None:
    command = [sys.executable, "-m", "weft", "chat", "-p", "scripted"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ) as child:
        assert child.stdin
        assert child.stdout
        child.stdin.write(b"hello\n")
        child.stdin.flush()
        assert child.stdout.readline() == b"One.\n"
        child.terminate()

        assert child.wait(timeout=30) == 128 + signal.SIGTERM


@pytest.fixture
def terminal(environ: dict[str, str]) -> Iterator[Terminal]:
    """Run a chat at a terminal."""
    terminal = Terminal(environ, "chat", "-p", "scripted")
    yield terminal
    terminal.close()


def test_at_a_terminal_a_person_types_several_lines_and_leaves(environ: dict[str, str]) -> None:
    terminal = Terminal(environ, "chat", "-p", "scripted")
    try:
        terminal.read_until("›")
        terminal.type("one\x1b\rtwo\r")
        terminal.read_until("One.")
        terminal.read_until("\x1b[?2004h")
        terminal.type("\x04")
        assert terminal.child.wait(timeout=60) == 0
    finally:
        terminal.close()

    search = [sys.executable, "-m", "weft", "search", "two", "--json"]
    shown = subprocess.run(search, capture_output=True, text=True, env=environ, check=True)
    assert "one\\ntwo" in shown.stdout


def test_a_reminder_that_is_due_is_told_apart_from_the_answers(environ: dict[str, str]) -> None:
    add = [sys.executable, "-m", "weft", "tasks", "add", "water the plants", "--due", "2026-01-01 09:00"]
    subprocess.run(add, env=environ, check=True, capture_output=True)

    first, second = talk(environ, stdin="hello\n"), talk(environ, stdin="again\n")

    assert first.stdout == "One.\n"
    assert first.stderr == "⏰ water the plants (due 2026-01-01 09:00, told late)\n"
    assert second.stderr == ""


def test_a_reminder_is_told_at_the_first_look_also_to_who_says_nothing(environ: dict[str, str]) -> None:
    add = [sys.executable, "-m", "weft", "tasks", "add", "water the plants", "--due", "2026-01-01 09:00"]
    subprocess.run(add, env=environ, check=True, capture_output=True)

    assert "water the plants" in talk(environ, stdin="").stderr


def test_a_reminder_appears_at_an_idle_prompt(terminal: Terminal, environ: dict[str, str]) -> None:
    terminal.read_until("›")
    terminal.type("half a mess")
    terminal.read_until("half a mess")
    add = [sys.executable, "-m", "weft", "tasks", "add", "water the plants", "--due", "2026-01-01 09:00"]
    subprocess.run(add, env=environ, check=True, capture_output=True)

    terminal.read_until("⏰ water the plants")
    terminal.read_until("half a mess")
    terminal.type("age\r")
    terminal.read_until("One.")


def test_tab_completes_commands_labels_recipes_and_files(
    terminal: Terminal, environ: dict[str, str], tmp_path: Path
) -> None:
    edit = [sys.executable, "-m", "weft", "memory", "edit", "groceries", "milk\neggs"]
    subprocess.run(edit, env=environ, check=True)
    (tmp_path / "shopping.txt").write_text("bread", "utf-8")
    terminal.read_until("›")

    terminal.complete("/sta", "tus")
    terminal.read_until("ession")
    terminal.complete("/memory groc", "eries")
    shown = terminal.read_until("eggs")
    assert "milk eggs" not in shown, "a block keeps its lines"
    assert "milk" in shown
    terminal.complete("/recipe mini", "claw")
    terminal.read_until("layers")
    terminal.type("/recipe nanoclaw\r")
    terminal.read_until("There is no recipe 'nanoclaw' here: did you mean 'miniclaw'?")
    terminal.complete(f"read @{tmp_path}/shopp", "ing.txt")
    terminal.read_until("One.")
    terminal.type("/receipt\r")
    terminal.read_until("attached shopping.txt, 5 bytes")


def test_tab_completes_the_models_that_the_providers_list(environ: dict[str, str]) -> None:
    pages = {"/models": {"data": [{"id": "gpt-heron"}, {"id": "gpt-otter"}]}}
    with LoopbackVendor("openai", pages=pages) as vendor:
        terminal = Terminal({**environ, **vendor.environ}, "chat")
        try:
            terminal.read_until("›")
            terminal.complete("/model openai:gpt-o", "tter")
            terminal.read_until("openai answers with")
        finally:
            terminal.close()


def test_an_earlier_session_is_picked_by_its_title(environ: dict[str, str]) -> None:
    for first in ("the heron\n", "the otter\n"):
        talk(environ, "--new", stdin=first)

    listed, wrong, picked = (
        talk(environ, "--new", stdin=f"{line}\n") for line in ("/resume", "/resume 9", "/resume 2\n/context")
    )

    lines = listed.stdout.splitlines()
    assert re.match(r"1\. \*\*the otter\*\* \d{4}-\d\d-\d\d \d\d:\d\d `\w+`", lines[0])
    assert lines[1].startswith("2. **the heron**")
    assert "No session of yours begins with '9': `/resume` lists them." in wrong.stderr
    assert "**the heron** goes on, with 2 messages so far." in picked.stdout
    assert "messages 1-2" in picked.stdout


def test_an_empty_answer_is_said(environ: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('[scripted]\nreplies = ["", "Two."]\n', "utf-8")

    done = talk(environ, stdin="one\ntwo\n")

    assert (done.returncode, done.stdout) == (0, "Two.\n")
    assert done.stderr.startswith("weft: The model gave an empty answer: ask again")


def test_a_recipe_is_changed_for_this_conversation(environ: dict[str, str]) -> None:
    done = talk(environ, stdin="/recipe omega\nhello\n/receipt\n/recipe\n")

    assert "tokens (" in done.stdout
    assert "recipe omega" in done.stdout
    assert done.stdout.count("**omega**") == 2
    assert talk(environ, stdin="/recipe /etc/passwd\n").returncode == 1


def test_files_that_a_message_names_are_sent_with_it(environ: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "tide.txt").write_text("at six", "utf-8")
    (tmp_path / "binary").write_bytes(b"\0\xff")
    (tmp_path / "bird.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    with LoopbackVendor("openai", ["fine", "fine"]) as vendor:
        done = subprocess.run(
            [sys.executable, "-m", "weft", "chat"],
            input="When, @./tide.txt and @bird.png?\nmail a@b.c @ada @gone.txt\n@binary\n",
            capture_output=True,
            text=True,
            env={**environ, **vendor.environ},
            cwd=tmp_path,
            timeout=60,
            check=False,
        )
        sent = [request.payload["messages"][-1]["content"] for request in vendor.requests]

    assert sent[0][0]["text"].endswith("bird.png?\n\n```tide.txt\nat six\n```")
    assert sent[0][1]["type"] == "image_url"
    assert sent[1][0]["text"].endswith("mail a@b.c @ada @gone.txt")
    assert (done.stdout, done.returncode) == ("fine\nfine\n", 1)
    assert done.stderr == (
        "weft: There is no file 'gone.txt', so only its name is sent.\n"
        "weft: 'binary' is neither UTF-8 text nor a picture: attach another file.\n"
    )


def test_a_notice_has_a_line_of_its_own_beside_the_spinner(environ: dict[str, str]) -> None:
    busy = Refusal(503, "busy", retry_after_seconds=0.2)
    with LoopbackVendor("openai", [busy, "Here I am."]) as vendor:
        terminal = Terminal({**environ, **vendor.environ}, "chat")
        try:
            terminal.read_until("›")
            terminal.type("hello\r")
            shown = terminal.read_until("Here I am.")
        finally:
            terminal.close()

    assert [line for line in lines_on_screen(shown) if line.startswith("weft: Trying again")]
    assert not [line for line in lines_on_screen(shown) if "thinkingweft" in line]
