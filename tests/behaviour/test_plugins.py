"""A package outside of ours brings a channel, providers, an embedder and tools; what is named is loaded."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from plugged import configure, install, run_weft


@pytest.fixture
def installed(tmp_path: Path) -> dict[str, str]:
    return install(tmp_path)


def test_a_provider_of_another_package_answers_when_it_is_named(installed: dict[str, str]) -> None:
    configure(installed, 'provider = "harbor"\n[plugins.harbor]\nmodel = "shout-2"\n')

    done = run_weft(installed, "ask", "--json", "where is the boat?")

    assert json.loads(done.stdout)["text"] == "WHERE IS THE BOAT?"
    assert json.loads(done.stdout)["receipt"]["model"] == "shout-2"
    assert (
        json.loads(run_weft(installed, "ask", "-m", "shout-3", "--json", "hi").stdout)["model"] == "shout-3"
    )


def test_tools_of_another_package_are_offered_when_they_are_named(installed: dict[str, str]) -> None:
    plugin = '[plugins.harbor]\nname = "Horta"\n'
    names = []
    for plugins in ("[]", '["harbor"]'):
        configure(installed, f'provider = "harbor"\n[tools]\nplugins = {plugins}\n{plugin}')
        shown = run_weft(installed, "context", "--json", "hi")
        names.append([tool["name"] for tool in json.loads(shown.stdout).get("tools", [])])

    assert "tide" not in names[0]
    assert "tide" in names[1]


def test_an_embedder_of_another_package_makes_searches_look_for_meaning(installed: dict[str, str]) -> None:
    configure(installed, 'provider = "harbor"\n[search]\nembedder = "harbor"\n')
    run_weft(installed, "memory", "create", "notes")
    run_weft(installed, "memory", "edit", "notes", "the boat leaves at dawn")

    hits = json.loads(run_weft(installed, "search", "--json", "tab").stdout)

    assert [hit["mode"] for hit in hits] == ["hybrid"]


@pytest.fixture
def serving(installed: dict[str, str], tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "folder"
    folder.mkdir()
    configure(
        installed,
        'provider = "harbor"\nchannels = ["harbor"]\n[http]\nenabled = false\n'
        f'[plugins.harbor]\nfolder = "{folder}"\nallowed = ["ada"]\n',
    )
    server = subprocess.Popen(
        [sys.executable, "-m", "weft", "serve"], env=installed, stderr=subprocess.PIPE, text=True
    )
    assert server.stderr is not None
    assert any("harbor is open" in line for line in server.stderr)
    yield folder
    server.send_signal(signal.SIGTERM)
    assert server.wait(30) == 0
    server.stderr.close()


def test_a_channel_of_another_package_is_served_without_a_line_of_ours(serving: Path) -> None:
    (serving / "ada.part").write_text("good morning", "utf-8")
    (serving / "ada.part").rename(serving / "ada.txt")
    (serving / "mallory.part").write_text("let me in", "utf-8")
    (serving / "mallory.part").rename(serving / "mallory.txt")

    assert _wait_for(serving / "ada.answer.txt") == "GOOD MORNING"
    assert "weft pair" in _wait_for(serving / "mallory.answer.txt")


def _wait_for(path: Path) -> str:
    for _ in range(3000):
        if path.exists() and (text := path.read_text("utf-8")):
            return text
        time.sleep(0.01)  # another process writes it
    raise AssertionError(f"{path.name} was not written")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('provider = "harbr"', "There is no provider 'harbr': did you mean 'harbor'?"),
        (
            'provider = "harbor"\n[tools]\nplugins = ["harbr"]',
            "No installed package has a plugin 'harbr' for tools: did you mean 'harbor'?",
        ),
        (
            'provider = "harbor"\n[search]\nembedder = "none"',
            "No installed package has a plugin 'none' for embedders: known are harbor.",
        ),
    ],
)
def test_a_plugin_that_is_not_there_is_one_sentence(
    installed: dict[str, str], text: str, sentence: str
) -> None:
    configure(installed, text)
    Path(installed["WEFT_HOME"], "weft.db").touch()

    done = run_weft(installed, "ask", "hi")

    assert (done.returncode, done.stderr) == (2, f"weft: {sentence}\n")


def test_an_installed_plugin_that_nobody_names_is_not_imported(installed: dict[str, str]) -> None:
    configure(installed, 'provider = "scripted"')
    code = (
        "import asyncio, sys, weft\n"
        "async def main():\n"
        "    app = await weft.connect()\n"
        "    await app.ask('hi', session='s')\n"
        "    await app.close()\n"
        "asyncio.run(main())\n"
        "print([name for name in sys.modules if name.startswith('weft_harbor')])"
    )

    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=installed, capture_output=True, text=True, check=False)

    assert (done.stdout, done.returncode) == ("[]\n", 0), done.stderr
