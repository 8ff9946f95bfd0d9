"""What a plain installation can do: few packages, no server, and one sentence where an extra is missing."""

import re
import subprocess
import sys
import tomllib
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest

from programs import environ, run_weft
from weft.channels.telegram_settings import TelegramSettings
from weft.cli.docs import list_pages
from weft.cli.doctor import _extras
from weft.config import Config, SearchSettings

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
SERVERS = {"fastapi", "mcp", "pydantic", "starlette", "uvicorn"}
MOST_PACKAGES = 30
WITHOUT = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Missing())
sys.argv = ["weft", *sys.argv[1:]]
from weft.cli.main import main
main()
"""


def _plain(name: str) -> str:
    return re.split(r"[<>=!~;\[( ]", name)[0].lower().replace("_", "-")


def _needed(name: str, known: dict[str, Distribution]) -> dict[str, Distribution]:
    """Collect a package and all that it needs without extras."""
    if _plain(name) not in known:
        known[_plain(name)] = distribution(name)
        for line in known[_plain(name)].requires or []:
            if not re.search(r"extra|win32|Windows|python_version\s*<|python_full_version\s*<", line):
                _needed(_plain(line), known)
    return known


def _core() -> dict[str, Distribution]:
    known: dict[str, Distribution] = {}
    for line in PROJECT["project"]["dependencies"]:
        _needed(_plain(line), known)
    return known


def _run_core(home: Path, *args: str) -> "subprocess.CompletedProcess[str]":
    """Run a command where no package of a server can be imported."""
    program = WITHOUT.format(names=sorted(SERVERS))
    command = [sys.executable, "-c", program, *args]
    return subprocess.run(
        command, env=environ(home), capture_output=True, text=True, check=False, timeout=60, input=""
    )


def test_the_core_needs_few_packages_and_no_server() -> None:
    core = _core()

    assert len(core) + 1 <= MOST_PACKAGES, sorted(core)
    assert not SERVERS & set(core)


def test_all_is_every_other_extra() -> None:
    extras = PROJECT["project"]["optional-dependencies"]

    assert set(extras) == {"all", "local", "mcp", "meaning", "minilm", "serve", "telegram"}
    assert extras["all"] == [f"weft[{','.join(sorted(set(extras) - {'all'}))}]"]


@pytest.mark.parametrize(
    "args",
    [
        ("init",),
        ("ask", "-p", "scripted", "hello"),
        ("chat", "-p", "scripted"),
        ("context", "-p", "scripted", "hello"),
        ("memory", "edit", "notes", "a boat"),
        ("memory", "list"),
        ("search", "boat"),
        ("sessions", "list"),
        ("tasks", "list"),
        ("skills", "list"),
        ("recipes", "list"),
        ("docs", "config"),
        ("serve", "--print-unit"),
    ],
)
def test_a_plain_installation_has_every_command_that_serves_nobody(
    tmp_path: Path, args: tuple[str, ...]
) -> None:
    done = _run_core(tmp_path, *args)

    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("command", "extra"), [("serve", "serve"), ("mcp", "mcp")])
def test_a_missing_extra_is_one_sentence_with_the_command(tmp_path: Path, command: str, extra: str) -> None:
    (tmp_path / "config.toml").write_text('provider = "scripted"\n[http]\nenabled = true\n', "utf-8")

    done = _run_core(tmp_path, command)

    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert f"pip install 'weft[{extra}]'." in done.stderr


def test_doctor_names_the_extra_that_a_setting_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    telegram = TelegramSettings(token="t")  # noqa: S106 - no real one
    config = Config(telegram=telegram, search=SearchSettings(embedder="wordllama"))
    assert list(_extras(config)) == []

    monkeypatch.setattr("weft.cli.doctor.find_spec", lambda name: None)
    monkeypatch.setattr("weft.recall.wordllama.util.find_spec", lambda name: None)
    findings = list(_extras(config))

    assert [finding.level for finding in findings] == ["bad", "bad"]
    assert [finding.remedy for finding in findings] == [
        "pip install 'weft[meaning]'",
        "pip install 'weft[telegram]'",
    ]
    assert list(_extras(Config())) == []


def test_every_page_of_the_docs_is_in_the_wheel_and_has_a_name_of_its_own() -> None:
    included = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    front = ROOT / "docs" / "index.md"  # the site's; `weft docs` lists the pages instead
    pages = sorted(path for path in (ROOT / "docs").rglob("*.md") if path != front)

    assert {path.relative_to(ROOT).parts[1] for path in pages} == {Path(folder).name for folder in included}
    assert sorted(list_pages().values()) == pages


def test_weft_docs_prints_a_page_and_lists_all(tmp_path: Path) -> None:
    listing = run_weft(environ(tmp_path), "docs")
    page = run_weft(environ(tmp_path), "docs", "config")

    assert [line.split("  ")[0] for line in listing.stdout.splitlines()] == list(list_pages())
    assert page.stdout == (ROOT / "docs/reference/config.md").read_text("utf-8")


def test_an_unknown_page_is_refused_with_the_nearest_name(tmp_path: Path) -> None:
    done = run_weft(environ(tmp_path), "docs", "../reference/confg.md")

    assert done.returncode == 2
    assert "did you mean 'config'?" in done.stderr


def test_no_file_of_the_program_sends_a_reader_to_the_repository() -> None:
    texts = [path for path in (ROOT / "src").rglob("*") if path.suffix in (".py", ".toml", ".md")]

    assert [
        str(path) for path in texts if re.search(r"docs/[\w-]+/[\w-]+\.md", path.read_text("utf-8"))
    ] == []
