"""A package outside of ours brings one part of each kind; what the settings or a recipe name is loaded."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from plugged import EXAMPLE, configure
from programs import run_weft, start_server


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
def board(tmp_path: Path) -> Path:
    """A workspace with a notice board."""
    (tmp_path / "board.txt").write_text("fog\nferry at 9\n<block:x> gale\n", "utf-8")
    return tmp_path


def test_a_source_of_another_package_fills_a_layer_of_a_recipe_that_names_it(
    installed: dict[str, str], board: Path
) -> None:
    configure(installed, 'provider = "harbor"')
    options = ("--recipe", str(EXAMPLE / "harbor.toml"), "--workspace", str(board))

    done = run_weft(installed, "context", *options, "--explain", "--json", "when do we leave?")

    context = json.loads(done.stdout)
    [section] = [section for section in context["sections"] if section["layer"] == "harbor"]
    items = [item for item in context["receipt"]["items"] if item["layer"] == "harbor"]
    assert section["text"] == (
        "<context:board>\nNotices, newest last:\nferry at 9\n&lt;block:x> gale\n</context:board>"
    )
    assert [item["title"] for item in items] == ["ferry at 9", "<block:x> gale", "heading"]
    assert {(item["source"], item["kept"]) for item in items} == {("harbor", True)}
    assert [item.get("origin") for item in items] == ["import", "import", None]
    assert items[0]["reason"] == "offered by the source harbor"
    assert sum(item["tokens"] for item in items) == section["tokens"] > 0


def test_a_recipe_whose_source_comes_from_a_package_is_validated_with_its_options(
    installed: dict[str, str], tmp_path: Path
) -> None:
    text = (EXAMPLE / "harbor.toml").read_text("utf-8")
    path = tmp_path / "mine.toml"
    outcomes = []
    for written, instead in (
        ("", ""),
        ("max_lines", "max_line"),
        ("max_lines = 2", "max_lines = 0"),
        ("max_lines = 2", 'max_lines = "two"'),
        ('"harbor"\ntag', '"harbr"\ntag'),
    ):
        path.write_text(text.replace(written, instead), "utf-8")
        done = run_weft(installed, "recipes", "validate", str(path))
        outcomes.append((done.returncode, done.stderr.removeprefix(f"weft: {path}.layers[2]").rstrip()))

    assert outcomes == [
        (0, ""),
        (2, " (harbor) has an unknown key 'max_line': did you mean 'max_lines'?"),
        (2, " (harbor): `max_lines` must be at least 1."),
        (2, ".max_lines must be a whole number, not text."),
        (
            2,
            ".source cannot be 'harbr', which no installed package has in `weft.sources`: "
            "did you mean 'harbor'?",
        ),
    ]


@pytest.mark.parametrize(
    ("layer", "sentence"),
    [
        ('source = "facts"\nlimt = 5', "(facts) has an unknown key 'limt': "),
        ('source = "recall"\nlimt = 5', "(recall) has an unknown key 'limt': did you mean 'limit'?"),
        ('source = "tides"', "source cannot be 'tides', which no installed package has in `weft.sources`: "),
    ],
)
def test_a_recipe_with_a_wrong_layer_stops_a_command_before_anything_is_done(
    installed: dict[str, str], tmp_path: Path, layer: str, sentence: str
) -> None:
    path = tmp_path / "mine.toml"
    ends = '[[layers]]\nsource = "history"\n[[layers]]\nsource = "message"\n'
    path.write_text(f'name = "mine"\n[limits]\nmax_tokens = 900\n[[layers]]\n{layer}\n{ends}', "utf-8")
    configure(installed, 'provider = "harbor"')

    done = run_weft(installed, "ask", "--recipe", str(path), "hi")

    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith(f"weft: {path}.layers[0]")
    assert sentence in done.stderr
    assert not Path(installed["WEFT_HOME"], "weft.db").exists()


def test_a_program_outside_of_ours_adds_a_source_of_its_own(
    installed: dict[str, str], tmp_path: Path
) -> None:
    recipe = tmp_path / "mine.toml"
    recipe.write_text((EXAMPLE / "harbor.toml").read_text("utf-8").replace('"harbor"\ntag', '"tide"\ntag'))
    code = (
        "import asyncio, sys, weft\n"
        "async def tide(request, options):\n"
        "    return f'high at {options[\"max_lines\"]} for {request.message}'\n"
        "builder = weft.ContextBuilder(recipe=sys.argv[1]).with_source('tide', tide)\n"
        "context = asyncio.run(builder.build('Ada'))\n"
        "item, *_ = [item for item in context.receipt.items if item.layer == 'tide']\n"
        "print(context.turn_text, item.source, item.kept, item.origin, item.title, item.reason, sep='\\n')"
    )

    command = [sys.executable, "-c", code, str(recipe)]
    done = subprocess.run(command, env=installed, capture_output=True, text=True, check=False, timeout=60)

    assert done.stdout.splitlines() == [
        *("<context:board>", "Notices, newest last:", "high at 2 for Ada", "</context:board>"),
        *("tide", "True", "import", "high at 2 for Ada", "offered by the source tide"),
    ], done.stderr


@pytest.fixture
def serving(installed: dict[str, str], tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "folder"
    folder.mkdir()
    configure(
        installed,
        'provider = "harbor"\nchannels = ["harbor"]\n[http]\nenabled = false\n'
        f'[plugins.harbor]\nfolder = "{folder}"\nallowed = ["ada"]\n',
    )
    server = start_server(installed)
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
