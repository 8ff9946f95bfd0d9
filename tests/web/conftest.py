"""A browser for the tests of one file."""

from collections.abc import Iterator
from typing import Any

import pytest

from browsing import browser


@pytest.fixture(scope="module")
def chrome() -> Iterator[Any]:
    """Run a browser. It must end with its file: while it runs, no test of this process can be async."""
    with browser() as running:
        yield running
