"""Fixtures for the tests of the gateway."""

from pathlib import Path

import pytest


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Make a folder for a stream to watch."""
    path = tmp_path / "notes"
    path.mkdir()
    return path
