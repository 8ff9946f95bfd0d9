"""One browser for the tests of a file.

It keeps an event loop in this thread, so asynchronous tests cannot run until it is closed.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from browsing import browser


@pytest.fixture(scope="module")
def chrome() -> Iterator[Any]:
    with browser() as running:
        yield running
