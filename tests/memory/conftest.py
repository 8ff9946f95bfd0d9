"""Documents in these tests live at one moment, so that what a log shows is known."""

import pytest

from samples import NOW


@pytest.fixture(autouse=True)
def now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.memory.schemas.log.now", lambda: NOW)
