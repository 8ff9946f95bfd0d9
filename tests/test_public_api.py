"""The public names are the ones that are promised, and importing them costs nothing."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import weft

HEAVY = (
    "asyncio",
    "httpx",
    "opentelemetry",
    "pydantic",
    "rich",
    "rs_bpe",
    "structlog",
    "typer",
    "xllamacpp",
    "yaml",
)


def test_all_is_sorted_and_every_name_in_it_exists() -> None:
    assert list(weft.__all__) == sorted(weft.__all__)
    for name in weft.__all__:
        assert getattr(weft, name) is not None


def test_type_checkers_see_the_same_names_as_programs() -> None:
    tree = ast.parse(Path(weft.__file__).read_text("utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    imported = {
        alias.asname or alias.name
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }

    assert imported == set(weft.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="Contxt"):
        _ = weft.Contxt  # type: ignore[attr-defined]


def test_importing_weft_pulls_in_nothing_heavy() -> None:
    code = f"import sys, weft; print([m for m in {HEAVY!r} if m in sys.modules])"

    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert found.stdout.strip() == "[]"


def test_the_help_of_the_program_pulls_in_no_engine() -> None:
    code = (
        "import sys; sys.argv = ['weft', '--help']\n"
        "from weft.cli.main import main\n"
        "try:\n    main()\n"
        "except SystemExit:\n    pass\n"
        "heavy = 'asyncio opentelemetry rs_bpe structlog xllamacpp yaml weft.compose'.split()\n"
        "print([m for m in heavy if m in sys.modules])"
    )

    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert found.stdout.strip().splitlines()[-1] == "[]"
