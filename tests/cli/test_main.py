"""The table of commands, and what each of them offers."""

from typing import Any

import pytest
from typer.testing import CliRunner

from weft.cli.main import COMMANDS, app


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_offers_to_install_a_completion_of_its_own(command: str) -> None:
    shown: Any = CliRunner().invoke(app, [command, "--help"])

    assert shown.exit_code == 0
    assert "completion" not in shown.output
