"""Data streams of Pattern: a notification is a message with blocks, for that turn."""

from pathlib import Path

import pytest

from watching import watches, watching, write
from wired import said


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("WEFT_RECIPE", "pattern")


async def test_P37_a_notification_of_a_stream_loads_its_blocks_for_that_turn_only(tmp_path: Path) -> None:
    settings = watches(folder=str(tmp_path), pattern="*.md", blocks=("rules",))
    async with watching(settings) as watched:
        store = await watched.store()
        await store.memory.create_block("weft/telegram:7", "rules")
        await store.memory.append_to_block("weft/telegram:7", "rules", "Sum up what is new.")
        await store.memory.create_block("weft/telegram:7", "pinned", pinned=True)
        await store.memory.append_to_block("weft/telegram:7", "pinned", "Always here.")
        await watched.look()
        write(tmp_path / "boat.md", "It is called Marlin.")
        await watched.look()
        await watched.gateway.submit(said("And now?"))
        await watched.wait(2)

    texts = ("Always here.", "Sum up what is new.", "It is called Marlin.")
    shown = [[text in request.system_prompt for text in texts] for request in watched.model.requests]
    assert shown == [[True, True, True], [True, False, False]]
