"""The table of commands, and what each of them offers."""

from typing import Any

import pytest
from typer.testing import CliRunner

from weft.cli.main import COMMANDS, app


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
