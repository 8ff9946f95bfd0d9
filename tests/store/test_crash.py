"""A process is killed while it writes: everything it acknowledged is there, and nothing is half there.

The same holds for a copy of the file and its `-wal`, taken before anything recovers it.
"""

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import weft

ROUNDS = int(os.environ.get("WEFT_CRASH_ROUNDS", "50"))
WRITER = Path(__file__).parent / "crash_writer.py"


def _write_until_killed(path: Path, name: str, acknowledged: int) -> list[str]:
    """Start the writer, let it acknowledge so many writes, kill it; what it said until then."""
    writer = subprocess.Popen(
        [sys.executable, str(WRITER), str(path), name], stdout=subprocess.PIPE, text=True
    )
    assert writer.stdout is not None
    said = [writer.stdout.readline().strip() for _ in range(acknowledged)]
    writer.kill()
    said += writer.stdout.read().split("\n")
    writer.wait()
    writer.stdout.close()
    return [line for line in said if line]


async def check_survivors(path: Path, name: str, said: list[str]) -> None:
    newest = dict.fromkeys(("turn", "fact", "block"), 0)
    for line in said[1:]:
        kind, _, number = line.partition(" ")
        if number.isdigit():
            newest[kind] = int(number)
    session = said[0].partition(" ")[2]
    async with await weft.open(path) as store:
        messages = [message.content for message in await store.messages.all(session)]
        text = await store.memory.get_rendered_content("iris", name) or ""
        facts = {fact.key: fact.value for fact in await store.facts.list("crash:42")}
        assert await store.check() == []
    assert len(messages) % 2 == 0, "half a turn is visible"
    assert f"answer {newest['turn']}" in messages or not newest["turn"]
    assert len(messages) // 2 >= newest["turn"]
    assert text.splitlines()[: newest["block"]] == [f"line {n}" for n in range(1, newest["block"] + 1)]
    if newest["fact"]:
        assert int(facts[f"{name} key"].split()[-1]) >= newest["fact"]


async def test_every_acknowledged_write_survives_a_kill_at_any_moment(tmp_path: Path) -> None:
    path = tmp_path / "weft.db"
    chance = random.Random(7)

    for number in range(ROUNDS):
        name = f"round {number}"
        said = _write_until_killed(path, name, chance.randint(1, 60))

        for end in ("", "-wal"):
            shutil.copy(f"{path}{end}", tmp_path / f"copy.db{end}")
        await check_survivors(tmp_path / "copy.db", name, said)
        await check_survivors(path, name, said)
