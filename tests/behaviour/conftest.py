"""Fixtures for the tests of behaviour."""

from pathlib import Path

import pytest

from plugged import install


@pytest.fixture
def installed(tmp_path: Path) -> dict[str, str]:
    """Return the environment of a program for which the example package is installed."""
    return install(tmp_path)
