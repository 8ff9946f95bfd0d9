"""The public names are the ones that are promised, and importing them costs nothing."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import weft
from programs import environ, run_weft

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


def test_every_public_name_exists_and_the_list_is_sorted() -> None:
    stub = ast.parse(Path(weft.__file__).with_suffix(".pyi").read_text("utf-8"))
    listed = next(ast.literal_eval(node.value) for node in stub.body if isinstance(node, ast.Assign))

    assert list(weft.__all__) == listed == sorted(listed)
    for name in weft.__all__:
        assert getattr(weft, name) is not None


def test_every_public_name_has_a_docstring() -> None:
    things = {name: getattr(weft, name) for name in weft.__all__ if name != "__version__"}

    # A dataclass without a docstring gets its signature as one.
    bare = [
        name for name, thing in things.items() if not thing.__doc__ or thing.__doc__.startswith(f"{name}(")
    ]

    assert bare == []


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


def test_a_question_in_a_pipe_pulls_in_only_what_it_needs(tmp_path: Path) -> None:
    code = (
        "import sys; sys.argv = ['weft', 'ask', '-p', 'scripted', 'hi']\n"
        "from weft.cli.main import main\n"
        "try:\n    main()\n"
        "except SystemExit:\n    pass\n"
        "heavy = 'httpx importlib.metadata numpy prompt_toolkit pydantic rich.live rich.markdown rich.table "
        "weft.channels.chat xllamacpp yaml'.split()\n"
        "print([m for m in heavy if m in sys.modules])"
    )

    found = run_weft(environ(tmp_path), program=(sys.executable, "-c", code))

    assert found.stdout.splitlines() == ["This reply was scripted: no model was asked.", "[]"]
