"""What a turn costs the disk: how often it waits for a commit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

import weft
from weft.types.request import Caller


@pytest.fixture
def commits() -> Iterator[list[None]]:
    """Every commit of every connection that writes, as SQLite itself tells."""
    seen = list[None]()

    def count() -> bool:
        seen.append(None)
        return False

    def hook(connection: apsw.Connection) -> None:
        if not connection.readonly("main"):
            connection.set_commit_hook(count)

    apsw.connection_hooks.append(hook)
    yield seen
    apsw.connection_hooks.remove(hook)


async def test_a_turn_waits_for_two_commits_and_the_first_one_of_a_person_for_four(
    tmp_path: Path, commits: list[None]
) -> None:
    provider = weft.ScriptedProvider(["Calm."] * 12, remember=False)
    app = await weft.connect(provider=provider, database=tmp_path / "weft.db")
    await app.ask("Good morning!", session="warm up")
    numbers = []
    for name in ("ada", "grace", "joan"):
        caller = Caller(channel="http", sender_id=name, agent_id="weft")
        for _ in range(3):
            before = len(commits)
            await app.ask("How is the sea?", session=f"talk of {name}", caller=caller)
            numbers.append(len(commits) - before)
    await app.close()

    # A new person: the starter blocks, the session, the message, the answer.
    assert numbers == [4, 2, 2] * 3
