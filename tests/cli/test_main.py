"""The table of commands, what each of them offers, and how the program ends."""

import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from programs import environ, run_weft
from weft.cli.main import COMMANDS, app

_HANDLER = """
import atexit, sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "typer":
            atexit.register(print, "registered while it runs")

sys.meta_path.insert(0, Finder())
"""


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_offers_to_install_a_completion_of_its_own(command: str) -> None:
    shown: Any = CliRunner().invoke(app, [command, "--help"])

    assert shown.exit_code == 0
    assert "-completion" not in shown.output
    assert "<bool>" not in shown.output, "a flag takes no value"


def test_letters_in_the_wrong_order_name_the_command_with_these_letters() -> None:
    shown: Any = CliRunner().invoke(app, ["aks", "hello"])

    assert shown.exit_code == 2
    assert "There is no command 'aks': did you mean 'ask'?" in shown.output


@pytest.mark.parametrize(
    ("program", "handlers"),
    [
        (_HANDLER, ["registered while it runs"]),
        (
            f"{_HANDLER}\natexit.register(print, 'registered before')",
            ["registered while it runs", "registered before"],
        ),
    ],
)
def test_exit_handlers_of_others_run_before_the_program_ends(
    tmp_path: Path, program: str, handlers: list[str]
) -> None:
    code = f"{program}\nfrom weft.__main__ import main\nmain()"

    done = run_weft(environ(tmp_path), "ask", "-p", "nobody", "hi", program=(sys.executable, "-c", code))

    assert done.stdout.splitlines() == handlers
    assert done.returncode == 2
    assert "nobody" in done.stderr
