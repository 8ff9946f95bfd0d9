"""The first day of a new user: from the wheel in a new environment to the third conversation."""

import os
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import weft
from programs import Terminal, environ, run_weft
from weft.testing import LoopbackVendor

ROOT = Path(__file__).parents[2]
READY = "\x1b[?2004h"
"""What a terminal is sent when the next line can be typed."""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the command of a wheel that was built and installed as `make wheel` and pip do it.

    No network is used: the packages that Weft needs are those of the environment of the tests.
    """
    folder = tmp_path_factory.mktemp("install")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    build = [
        "wheel",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
        "--wheel-dir",
        str(folder),
        str(ROOT),
    ]
    subprocess.run([*pip, *build], check=True, capture_output=True, timeout=300)
    (wheel,) = folder.glob("weft-*.whl")
    venv.create(folder / "env", with_pip=False)
    python = folder / "env" / "bin" / "python"
    subprocess.run(
        [*pip, "--python", str(python), "install", "--no-deps", "--no-index", str(wheel)],
        check=True,
        capture_output=True,
        timeout=300,
    )
    (site,) = (folder / "env" / "lib").glob("python*/site-packages")
    (site / "packages.pth").write_text(sysconfig.get_path("purelib"), "utf-8")
    return str(folder / "env" / "bin" / "weft")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def calls(name: str, **arguments: Any) -> weft.Reply:
    call = weft.ToolCall(id="call_1", name=name, arguments=arguments)
    return weft.Reply(tool_calls=(call,), stop_reason="tools")


@pytest.fixture
def vendor() -> Iterator[LoopbackVendor]:
    script = (
        calls("memory_append", label="human", text="Lives in Lisbon."),
        "I will remember that you live in Lisbon.",
        "none",  # what is learned when the person leaves
        "You live in Lisbon.",
        calls("remember_fact", key="tea", value="green"),
        "Green tea, noted.",
        "none",
        "They talked about Lisbon and tea.",  # what is learned at /new; all facts are known by then
        "Lisbon, and green tea.",
        "none",
    )
    with LoopbackVendor("openai", script, pages={"/models": {"data": [{"id": "gpt-4o"}]}}) as server:
        yield server


def around(home: Path, vendor: LoopbackVendor) -> dict[str, str]:
    return environ(home, TERM="xterm", OLLAMA_HOST="127.0.0.1:1", WEFT_MODEL="gpt-4o", **vendor.environ)


def talk(env: Mapping[str, str], program: str, *lines: tuple[str, str]) -> str:
    """Type lines into `weft chat` at a terminal, each after the answer before, and leave."""
    terminal = Terminal(dict(env), "chat", program=[program])
    try:
        shown = terminal.read_until("›")
        for line, answer in lines:
            terminal.type(f"{line}\r")
            shown += terminal.read_until(answer) + answer
            shown += terminal.read_until(READY)
        terminal.type("\x04")
        assert terminal.child.wait(timeout=60) == 0
        return shown
    finally:
        terminal.close()


def test_from_the_wheel_to_the_third_conversation(installed: str, home: Path, vendor: LoopbackVendor) -> None:
    env = around(home, vendor)

    def weft_(*args: str, stdin: str = "") -> str:
        done = run_weft(env, *args, stdin=stdin, program=[installed])
        assert done.returncode == 0, done.stderr + done.stdout
        return done.stdout

    assert weft_("--version").startswith("weft ")
    made = weft_("init")
    for label in ("human", "persona", "notes"):
        assert f"the memory block {label}" in made
    assert "openai at http://127.0.0.1" in weft_("doctor")
    assert "openai:gpt-4o" in weft_("models")
    assert "Settings" in weft_("docs", "config")

    first = talk(env, installed, ("remember that I live in Lisbon", "(/undo takes it back)"))
    assert "memory_append" in first
    assert "I will remember that you live in Lisbon." in first
    second = talk(env, installed, ("where do I live?", "You live in Lisbon."), ("I like green tea", "back)"))
    assert "Green tea, noted." in second
    third = talk(env, installed, ("/new", "new session"), ("what do you know?", "Lisbon, and green tea."))

    assert third
    shown = str(vendor.requests[-2].payload)  # the last one learns from the conversation
    assert "Lives in Lisbon." in shown
    assert "tea: green" in shown
    assert "They talked about Lisbon and tea." in shown
    assert "owner (you)" in weft_("people", "list")
    assert "Lives in Lisbon." in weft_("memory", "show", "human")
    assert os.stat(home / "weft.db").st_mode & 0o777 == 0o600


def test_without_a_model_the_first_answer_says_how_to_get_one(installed: str, home: Path) -> None:
    env = environ(home, OLLAMA_HOST="127.0.0.1:1", HOME=str(home))
    (home).mkdir()
    (home / "config.toml").write_text('[local]\nmodel_path = "no/such/file"\n', "utf-8")
    done = run_weft(env, "ask", "hi", program=[installed])

    assert done.returncode == 1
    for way in ("ANTHROPIC_API_KEY", "start Ollama", "embedded model"):
        assert way in done.stderr
    assert "Traceback" not in done.stderr
