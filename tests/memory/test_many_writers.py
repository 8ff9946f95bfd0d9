"""Several programs edit one block at the same time, and every edit is there afterwards."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import weft
from weft.types.schema import BlockSchema

PROCESSES = 8
MANY = int(os.environ.get("WEFT_EDITS", "250"))
EDITS = {"text": MANY, "list": MANY, "counter": MANY, "whole": 60}
"""Of each program. `make chaos` has a thousand."""
WRITER = Path(__file__).parent / "many_writers.py"
SCHEMAS: dict[str, BlockSchema] = {
    "text": weft.TextSchema(),
    "whole": weft.TextSchema(),
    "list": weft.ListSchema(),
    "counter": weft.MapSchema(fields=(weft.FieldDef(name="count", type="counter"),)),
}


async def _block(path: Path, kind: str) -> None:
    async with await weft.open(path) as store:
        await store.memory.create_block("iris", kind, schema=SCHEMAS[kind], char_limit=10_000_000)


def _writer(path: Path, kind: str, number: int, edits: int, *more: str) -> subprocess.Popen[str]:
    command = [sys.executable, str(WRITER), str(path), kind, str(number), str(edits), *more]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("kind", SCHEMAS)
async def test_of_thousands_of_edits_of_many_programs_none_is_lost(tmp_path: Path, kind: str) -> None:
    await _block(tmp_path / "w.db", kind)
    edits = EDITS[kind]

    writers = [_writer(tmp_path / "w.db", kind, number, edits, "pause") for number in range(PROCESSES)]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "read\n"
    for writer in writers:  # all have read before the first one writes
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    said = [writer.communicate(timeout=300)[0] for writer in writers]

    assert said == ["done\n"] * PROCESSES
    wanted = Counter(f"w{writer}n{number}" for writer in range(PROCESSES) for number in range(edits))
    async with await weft.open(tmp_path / "w.db") as store:
        text = await store.memory.get_rendered_content("iris", kind) or ""
        history = await store.memory.block_history("iris", kind)
        assert await store.check() == []
    assert len(history) == 1 + PROCESSES * edits
    if kind in ("text", "whole"):
        assert Counter(text.splitlines()) == wanted
    elif kind == "list":
        assert Counter(line.partition(". ")[2] for line in text.splitlines()) == wanted
    else:
        assert text == f"count: {PROCESSES * edits}"


async def test_who_thinks_for_long_between_reading_and_writing_erases_nothing(tmp_path: Path) -> None:
    await _block(tmp_path / "w.db", "text")
    slow = _writer(tmp_path / "w.db", "text", 0, 1, "pause")
    assert slow.stdout is not None
    assert slow.stdout.readline() == "read\n"

    async with await weft.open(tmp_path / "w.db") as store:
        for number in range(50):
            await store.memory.update_block_text("iris", "text", f"w1n{number}\n", is_system=True)
    assert slow.communicate("go\n", timeout=60)[0] == "done\n"

    async with await weft.open(tmp_path / "w.db") as store:
        text = await store.memory.get_rendered_content("iris", "text") or ""
    assert sorted(text.split()) == ["w0n0", "w1n49"]
