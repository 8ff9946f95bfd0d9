"""The documents are true: every name is in them, every link leads somewhere, generated parts are fresh."""

import dataclasses
import importlib.util
import re
import shutil
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
PROGRAM = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
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


@pytest.mark.parametrize("name", ["receipt", "turn", "epochs"])
async def test_a_picture_shows_what_the_program_shows_today(name: str) -> None:
    def texts(svg: str) -> list[str]:
        return [re.sub(r"[\d,]+", "n", text) for text in re.findall(r">([^<>]+)</text>", svg)]

    drawn = await getattr(_script("picture"), name)()

    assert texts(drawn) == texts((ROOT / "docs" / f"{name}.svg").read_text("utf-8")), "run make picture"


def test_the_generated_parts_of_the_reference_are_those_of_the_program_today() -> None:
    stale = [
        path.name for path, text in _script("reference").pages().items() if text != path.read_text("utf-8")
    ]

    assert stale == [], "run make reference"


def test_a_stale_part_is_noticed_and_mended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reference = _script("reference")
    copy = Path(shutil.copytree(REFERENCE, tmp_path / "reference"))
    monkeypatch.setattr(reference, "FOLDER", copy)
    for name, now, then in (
        ("config.md", "| whole number | `8713` |", "| text | `8000` |"),
        ("http.md", "### `GET /api/search`", "### `GET /api/find`"),
        ("options.md", "- `-c, --continue`", "- `--go-on`"),
        ("api.md", "### ContextBuilder", "### Builder"),
        ("recipes.md", "### miniclaw", "### maxiclaw"),
        ("errors.md", "RequestTooLong(", "TooLong("),
    ):
        text = (copy / name).read_text("utf-8")
        assert now in text
        (copy / name).write_text(text.replace(now, then), "utf-8")

    pages = reference.pages()

    assert [path.name for path, text in pages.items() if text == path.read_text("utf-8")] == []
    assert all(text == (REFERENCE / path.name).read_text("utf-8") for path, text in pages.items())


def test_the_glossary_has_each_word_once_in_order() -> None:
    words = re.findall(
        r"^\| \*\*([^*]+)\*\* \|", (REFERENCE / "glossary.md").read_text("utf-8"), re.MULTILINE
    )

    assert len(words) > 50
    assert words == sorted(set(words), key=str.casefold)


def test_the_programs_of_the_guide_to_memory_are_well_typed(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "guides" / "memory.md").read_text("utf-8")
    for number, block in enumerate(PROGRAM.findall(text)):
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


def test_every_promise_of_the_security_page_names_a_test_that_exists() -> None:
    page = (ROOT / "docs" / "explanation" / "security.md").read_text("utf-8")
    parts = page.split("\n## ")[1:]
    named = re.findall(r"`((?:tests|benchmarks)/[\w/]+\.py)`", page)

    assert [part.splitlines()[0] for part in parts if "*Shown by `" not in part] == []
    assert [path for path in named if not (ROOT / path).exists()] == []
