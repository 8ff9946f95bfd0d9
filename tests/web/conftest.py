"""One browser for all tests of a worker."""

from collections.abc import Iterator
from typing import Any

import pytest

from browsing import browser


@pytest.fixture(scope="session")
def chrome() -> Iterator[Any]:
    with browser() as running:
        yield running
