"""The documents are true: every name is in them, every link leads somewhere, the tutorial runs."""

import dataclasses
import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import weft
from weft import errors
from weft.cli.main import COMMANDS
from weft.config import Config
from weft.gateway.stream_settings import StreamSettings
from weft.sources.catalogue import SOURCES, known_keys
from weft.types.limits import ModelContextLimits
from weft.types.recipe import HistoryRule, Recipe

ROOT = Path(__file__).parent.parent
REFERENCE = ROOT / "docs" / "reference"
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"^```(console|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#]+)[^)]*\)")


def _script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _settings(cls: type, prefix: str = "") -> Iterator[str]:
    for field in dataclasses.fields(cls):
        if field.metadata.get("private"):
            continue
        default = field.default
        if dataclasses.is_dataclass(default) and not isinstance(default, type):
            yield from _settings(type(default), f"{prefix}{field.name}.")
        else:
            yield prefix + field.name


def test_every_command_has_a_heading_in_the_reference() -> None:
    headings = re.findall(r"^## weft (\w+)$", (REFERENCE / "commands.md").read_text("utf-8"), re.MULTILINE)

    assert headings == sorted(COMMANDS)


def test_every_setting_is_in_the_reference() -> None:
    text = (REFERENCE / "config.md").read_text("utf-8")

    assert [name for name in _settings(Config) if f"| `{name}` |" not in text] == []


def test_every_key_and_variable_of_a_vendor_is_in_the_reference() -> None:
    text = (REFERENCE / "config.md").read_text("utf-8")
    vendors = weft.wire.VENDORS.values()
    names = [f"| `keys.{vendor.key_name or vendor.name}` |" for vendor in vendors if vendor.key_variable]
    names += [f"`{name}`" for vendor in vendors for name in (vendor.key_variable, vendor.address_variable)]

    assert [name for name in names if name != "``" and name not in text] == []


def test_every_key_of_a_stream_is_in_the_reference() -> None:
    text = (REFERENCE / "config.md").read_text("utf-8")

    assert [name for name in _settings(StreamSettings) if f"| `{name}` |" not in text] == []


def test_every_key_of_a_recipe_is_in_the_reference() -> None:
    text = (REFERENCE / "recipes.md").read_text("utf-8")
    keys = {str(f.metadata.get("key", f.name)) for f in dataclasses.fields(Recipe)} - {"file"}
    keys |= {f.name for cls in (HistoryRule, ModelContextLimits) for f in dataclasses.fields(cls)}
    sources = {*SOURCES, "history", "message"}
    keys |= sources | {key for source in sources for key in known_keys(source)}

    assert [key for key in sorted(keys) if f"`{key}`" not in text and f"[{key}]" not in text] == []


def test_every_error_is_in_the_reference_with_its_exit_code() -> None:
    text = (REFERENCE / "errors.md").read_text("utf-8")
    tree = [
        cls for cls in vars(errors).values() if isinstance(cls, type) and issubclass(cls, errors.WeftError)
    ]

    for cls in tree:
        row = next(line for line in text.splitlines() if line.startswith(f"| `{cls.__name__}` |"))
        assert row.endswith(f"| {cls.exit_code} |")
        assert cls.__name__ in (errors.__doc__ or "")


def test_every_public_name_is_in_the_reference() -> None:
    text = (REFERENCE / "api.md").read_text("utf-8")

    assert [name for name in weft.__all__ if name not in text] == []


def test_the_conformance_page_is_true_and_lists_all_lines() -> None:
    conformance = _script("conformance")

    page = conformance.page()

    assert page == (REFERENCE / "conformance.md").read_text("utf-8"), "run python docs/conformance.py"
    ids = re.findall(r"^\| ([OPCM]\d+) \|", page, re.MULTILINE)
    assert len(ids) == len(set(ids)) == 160
    assert set(conformance.proofs()) <= set(ids)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_leads_somewhere(page: Path) -> None:
    links = [link for link in LINK.findall(page.read_text("utf-8")) if "://" not in link]

    assert [link for link in links if not (page.parent / link).exists()] == []


GONE = r"weft bench|http\.at_once|http\.max_waiting|\bApp\b|copy of the one file"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_no_page_speaks_of_what_is_gone(page: Path) -> None:
    assert re.findall(GONE, page.read_text("utf-8")) == []


def test_the_readme_begins_with_how_to_install_and_links_the_glossary_and_the_plugin_guide() -> None:
    top = "\n".join((ROOT / "README.md").read_text("utf-8").splitlines()[:20])

    for word in ("make demo", "pip install .", "weft init", "reference/glossary.md", "guides/plugins.md"):
        assert word in top


def test_the_readme_fits_a_screen_and_has_both_commands() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    makefile = (ROOT / "Makefile").read_text("utf-8")

    assert len(text.splitlines()) <= 50
    for command in ("demo", "test"):
        assert f"make {command}" in text
        assert re.search(rf"^{command}:", makefile, re.MULTILINE)


async def test_the_picture_shows_what_the_program_shows_today() -> None:
    def told(svg: str) -> list[str]:
        return [re.sub(r"[\d,]+", "n", text) for text in re.findall(r">([^<>]+)</text>", svg)]

    drawn = await _script("picture").picture()

    assert told(drawn) == told((ROOT / "docs" / "receipt.svg").read_text("utf-8")), "run make picture"


def check_blocks(page: Path, folder: Path) -> None:
    """Run the blocks of a page in order, as a reader would type them."""
    kept = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    environ = kept | {
        "OLLAMA_HOST": "127.0.0.1:9",
        "WEFT_HOME": str(folder / "home"),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    for kind, block in BLOCK.findall(page.read_text("utf-8")):
        if kind == "python":
            commands = [[sys.executable, "-c", block]]
        else:
            typed = [line.removeprefix("$ ") for line in block.splitlines() if line.startswith("$ ")]
            commands = [["bash", "-c", line] for line in typed]
        for command in commands:
            done = subprocess.run(
                command, cwd=folder, env=environ, capture_output=True, text=True, timeout=120, check=False
            )
            assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
            assert "--workspace mine" not in command[-1] or done.stdout


def test_the_tutorial_runs_as_it_is_written(tmp_path: Path) -> None:
    page = ROOT / "docs" / "tutorial" / "first-context.md"
    assert len(BLOCK.findall(page.read_text("utf-8"))) >= 7

    check_blocks(page, tmp_path)


@pytest.mark.parametrize(
    "guide", ["embed", "memory", "streams", "telegram", "testing", "tools", "write-a-recipe"]
)
def test_the_guides_run_as_they_are_written(tmp_path: Path, guide: str) -> None:
    check_blocks(ROOT / "docs" / "guides" / f"{guide}.md", tmp_path)


def test_the_programs_of_the_guide_to_memory_are_well_typed(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "guides" / "memory.md").read_text("utf-8")
    for number, (kind, block) in enumerate(BLOCK.findall(text)):
        if kind == "python":
            (tmp_path / f"memory_{number}.py").write_text(block, "utf-8")

    files = sorted(map(str, tmp_path.glob("*.py")))
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *files], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("page", [*PAGES, *ROOT.glob("examples/*.py")], ids=lambda page: page.name)
def test_no_page_and_no_example_uses_the_personal_database(page: Path) -> None:
    calls = re.findall(r"await weft\.connect\(.*", page.read_text("utf-8"))

    assert [call for call in calls if "database=" not in call and "store=" not in call] == []


def test_the_example_of_the_traces_runs(tmp_path: Path) -> None:
    check_blocks(REFERENCE / "logs.md", tmp_path)


def test_the_example_of_the_readme_runs(tmp_path: Path) -> None:
    (tmp_path / "my-workspace").mkdir()

    check_blocks(ROOT / "README.md", tmp_path)


def test_every_promise_of_the_security_page_names_a_test_that_exists() -> None:
    page = (ROOT / "docs" / "explanation" / "security.md").read_text("utf-8")
    parts = page.split("\n## ")[1:]
    named = re.findall(r"`((?:tests|benchmarks)/[\w/]+\.py)`", page)

    assert [part.splitlines()[0] for part in parts if "*Shown by `" not in part] == []
    assert [path for path in named if not (ROOT / path).exists()] == []
