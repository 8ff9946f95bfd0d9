"""What a turn costs the disk: how often it waits for a commit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import apsw
import httpx
import pytest

import weft
from http_server import serving
from weft.types.request import Caller

MOST_COMMITS = 4
_PATHS = {
    "/api/turns": lambda name: {"text": "How is the sea?", "session": f"talk of {name}", "sender": name},
    "/v1/chat/completions": lambda name: {
        "messages": [{"role": "user", "content": "How is the sea?"}],
        "user": name,
    },
}


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


@pytest.mark.parametrize("path", _PATHS)
async def test_a_served_turn_waits_for_four_commits_at_most(path: str, commits: list[None]) -> None:
    numbers = []
    async with serving(["Calm."] * 12) as served, httpx.AsyncClient(base_url=served.url) as http:
        await http.post(path, json=_PATHS[path]("warm up"))
        for name in ("ada", "grace"):
            for _ in range(2):
                before = len(commits)
                answer = await http.post(path, json=_PATHS[path](name))
                numbers.append(len(commits) - before)
                assert answer.status_code == 200

    assert max(numbers) <= MOST_COMMITS, numbers
    assert min(numbers) >= 2, "the message, then the answer: fewer means that commits are not counted"
