"""Texts without vectors are found fast, however long the log is."""

from pathlib import Path

import apsw

import weft
from weft.store.sqlite.vectors import _SAID


async def test_the_next_texts_to_embed_are_found_without_a_look_at_all_others(tmp_path: Path) -> None:
    async with await weft.open(tmp_path / "weft.db") as store:
        await store.sessions.new("app", "talk", "owner")

    with apsw.Connection(str(tmp_path / "weft.db")) as db:
        steps = [str(row[3]) for row in db.execute(f"explain query plan {_SAID}", (1, 64))]

    assert any("near" in step for step in steps)
    assert not [step for step in steps if step.startswith("SCAN")]
