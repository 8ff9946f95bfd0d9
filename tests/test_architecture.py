"""The limits that keep the code readable are tests, and each contract is shown to bite."""

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "weft"
MODULES = sorted(SOURCE.rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))

MAX_MODULE_LINES, MAX_FUNCTION_LINES, MAX_TEST_LINES = 400, 60, 600
BANNED_NAMES = {"utils", "util", "helpers", "common", "misc", "manager"}
CONTAINED = [
    "channels/sse.py",
    "gateway/deliveries.py",
    "gateway/dispatcher.py",
    "memory/loro_adapter.py",
    "recall/embed.py",
    "store/sqlite/database.py",
    "store/sqlite/database.py",
    "tools/function.py",
    "turn/act.py",
    "turn/run.py",
]
"""Where a failure of anything must be contained: Loro raises bare BaseExceptions; neither one request, one
message, one answer nor one write of a group must take the others with it; a stream that began can tell of a
failure only in itself; a tool and an embedder are anybody's code; and a turn that fails is recorded as
failed, whatever it was, before the error goes on."""
LAZY_IMPORTS = {
    ("cli/environment.py", "refuse_inspection"): "ctypes",
    ("__init__.py", "_homes"): "pathlib",
    ("compose.py", "_http_embedder"): "weft.recall.http_embed",
    ("models.py", "make_provider"): "weft.providers.http",
    ("channels/terminal_consent.py", "editor"): "weft.channels",
    ("channels/terminal.py", "drawn"): "rich.markdown",
    ("channels/terminal.py", "__init__"): "rich.progress",
    ("channels/terminal.py", "_dropped"): "rich.table",
    ("compose.py", "audit"): "weft.memory.audit",
    ("compose.py", "make_channels"): "weft.channels.telegram",
    ("cli/inspect.py", "_serve"): "weft.channels.pages.browsers",
    ("compose.py", "make_servers"): "weft.channels.http",
    ("compose.py", "page_settings"): "weft.channels.pages.desk",
    ("plugins.py", "_entry_points"): "importlib.metadata",
    ("gateway/feed.py", "_load"): "httpx",
    ("tools/fetch.py", "_load"): "httpx",
    ("channels/telegram.py", "_load"): "httpx",
    ("tokens.py", "_encoding"): "rs_bpe.bpe",
    ("workspace/skills.py", "_from_yaml"): "yaml",
    ("types/context.py", "new"): "weft.types.recipe",
    ("providers/local.py", "find_weights"): "importlib",
    ("providers/local.py", "_load"): "xllamacpp",
    ("spans.py", "_api"): "opentelemetry",
    ("recall/minilm.py", "__init__"): "tokenizers",
    ("recall/minilm.py", "_means"): "numpy",
    ("recall/wordllama.py", "_load"): "wordllama",
    ("tools/mcp_process.py", "_load"): "mcp",
}
"""Imports inside functions: heavy packages that most runs do not need. There are no others."""


def _functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def _name(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def test_no_module_and_no_test_file_is_too_long() -> None:
    limits = [(path, MAX_MODULE_LINES) for path in MODULES] + [(path, MAX_TEST_LINES) for path in TESTS]

    too_long = [str(p) for p, limit in limits if len(p.read_text("utf-8").splitlines()) > limit]

    assert too_long == []


def test_no_function_is_too_long() -> None:
    too_long = [
        f"{_name(path)}:{node.name}"
        for path in MODULES
        for node in _functions(path)
        if (node.end_lineno or 0) - node.lineno + 1 > MAX_FUNCTION_LINES
    ]

    assert too_long == []


def test_only_the_listed_functions_import_lazily() -> None:
    found = {
        (_name(path), node.name): inner.module if isinstance(inner, ast.ImportFrom) else inner.names[0].name
        for path in MODULES
        for node in _functions(path)
        for inner in ast.walk(node)
        if isinstance(inner, ast.Import | ast.ImportFrom)
    }

    assert found == LAZY_IMPORTS


def test_packages_have_no_logic_of_their_own() -> None:
    """Public names may be brought in and listed: below `weft` those of `weft.testing` and `weft.wire`."""
    found = {
        _name(path): [type(node) for node in ast.parse(path.read_text("utf-8")).body[1:]]
        for path in MODULES
        if path.name == "__init__.py" and path.parent != SOURCE
    }

    assert {name for name, nodes in found.items() if nodes} == {"testing/__init__.py", "wire/__init__.py"}
    for name in ("testing/__init__.py", "wire/__init__.py"):
        assert set(found[name]) == {ast.ImportFrom, ast.Assign}


def test_names_say_what_a_thing_is() -> None:
    assert [_name(path) for path in MODULES if path.stem in BANNED_NAMES or path.stem.endswith("_v2")] == []


def test_no_broad_except_hides_an_error() -> None:
    broad = [
        _name(path)
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or ast.unparse(node.type) in ("Exception", "BaseException"))
    ]

    assert broad == CONTAINED


def _lint_imports(folder: Path) -> "subprocess.CompletedProcess[str]":
    program = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    return subprocess.run(
        [sys.executable, "-c", program, "--no-cache"],
        cwd=folder,
        env={"PYTHONPATH": str(folder / "src"), "PATH": "/usr/bin:/bin", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def copied_tree(tmp_path: Path) -> Path:
    shutil.copytree(SOURCE, tmp_path / "src" / "weft", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_every_contract_holds() -> None:
    result = _lint_imports(ROOT)

    assert result.returncode == 0, result.stdout
    assert "4 kept, 0 broken" in result.stdout


@pytest.mark.parametrize(
    ("module", "line", "contract"),
    [
        ("types/message.py", "import weft.store.base", "Imports point down the page only"),
        ("context/fit.py", "import weft.providers.base", "Imports point down the page only"),
        ("compose.py", "import weft.testing", "Imports point down the page only"),
        ("memory/history.py", "import apsw", "Only the store imports a database driver"),
        ("context/fit.py", "import time", "The pure packages do no input or output"),
        ("wire/local.py", "import asyncio", "The pure packages do no input or output"),
        ("tokens.py", "import os", "The pure packages do no input or output"),
        ("types/section.py", "import pathlib", "The pure packages do no input or output"),
        ("providers/scripted.py", "import weft.store.base", "Context, wire and providers never import"),
    ],
)
def test_a_contract_breaks_when_it_is_broken(
    copied_tree: Path, module: str, line: str, contract: str
) -> None:
    path = copied_tree / "src" / "weft" / module
    path.write_text(path.read_text("utf-8") + f"\n{line}\n", "utf-8")

    result = _lint_imports(copied_tree)

    broken = [row for row in result.stdout.splitlines() if "BROKEN" in row]
    assert result.returncode == 1
    assert any(row.startswith(contract) for row in broken), result.stdout


def test_a_new_package_outside_the_layers_is_noticed(copied_tree: Path) -> None:
    (copied_tree / "src" / "weft" / "novelty.py").write_text('"""New."""\n', "utf-8")

    result = _lint_imports(copied_tree)

    assert result.returncode == 1
    assert "novelty" in result.stdout


def test_every_package_that_the_source_imports_is_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    listed = (*project["dependencies"], *(name for extra in extras for name in extra))
    declared = {_plain(re.split(r"[<>=!~\[ ]", each)[0]) for each in listed}
    imported = {
        name.split(".")[0]
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        for name in _imported(node)
    }
    packages = packages_distributions()
    foreign = imported - set(sys.stdlib_module_names) - {"weft"}

    missing = [name for name in foreign if not declared & set(map(_plain, packages.get(name, [name])))]

    assert missing == []


def _plain(name: str) -> str:
    return name.lower().replace("_", "-")


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module] if isinstance(node, ast.ImportFrom) and node.module and not node.level else []
