"""A purged text that also is a number, a hash, a time or a word of ours: nothing of ours is taken for it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw
import pytest

import weft

SAID = ("My pin is {}.", "What is the plan?", "And after that?")


async def talked(path: Path, text: str) -> tuple[weft.Assistant, weft.Store, str]:
    info = weft.ModelInfo(id="scripted", provider="scripted", max_tokens=8_000)
    app = await weft.connect(provider=weft.ScriptedProvider(["It is calm."] * 9, info=info), database=path)
    for said in SAID:
        await app.ask(said.format(text), session="talk")
    store = await app.store.get()
    [session] = await store.sessions.list()
    return app, store, session.id


def figures(receipts: list[weft.Receipt]) -> list[Any]:
    """Return all of receipts that is a number, or a name of ours."""
    return [
        (
            replace(one, items=(), warnings=(), errors=()),
            [(item.layer, item.source, item.tokens, item.kept, item.hash, item.origin) for item in one.items],
        )
        for one in receipts
    ]


async def receipts(store: weft.Store, session: str) -> list[weft.Receipt]:
    found = [await store.turns.find(turn.id) for turn in await store.turns.page(session, limit=20)]
    return [receipt for receipt in found if receipt is not None]


async def candidates(tmp_path: Path) -> dict[str, str]:
    """Return texts that occur in what Weft stores of a conversation."""
    app, store, session = await talked(tmp_path / "first.db", "nothing")
    last = (await receipts(store, session))[0]
    await app.close()
    file = apsw.Connection(str(tmp_path / "first.db"))
    digest = str(file.execute("select hash from contents order by length(text) desc limit 1").get)
    file.close()
    tokens = max(item.tokens for item in last.items)
    return {
        "limit": str(last.limit),
        "reserved": str(last.reserved),
        "tokens": str(tokens),
        "hash": digest[3:8],
    }


@pytest.mark.parametrize(
    "what",
    [
        "limit",
        "reserved",
        "tokens",
        "hash",
        "2",
        "runs",
        "shared",
        "seen",
        "always",
        "pending",
        "2026",
        "sent",
    ],
)
async def test_receipts_ids_and_turns_stay_whole_and_the_conversation_goes_on(
    tmp_path: Path, what: str
) -> None:
    text = (await candidates(tmp_path)).get(what, what)
    app, store, session = await talked(tmp_path / "weft.db", text)
    before = figures(await receipts(store, session))

    await store.purge(text)

    assert figures(await receipts(store, session)) == before
    assert f"My pin is {text}." not in [one.content for one in await store.messages.all(session)]
    assert (await app.ask("Are you still there?", session="talk")).text == "It is calm."
    assert (await app.ask(f"The pin was {text}.", session="talk")).text == "It is calm."
    assert len(await receipts(store, session)) == len(SAID) + 2
    assert {hit.id for hit in await store.memory.search("weft", "plan")}
    assert await store.check() == []
    await app.close()
    async with await weft.open(tmp_path / "weft.db") as again:
        await again.export(tmp_path / "out")
    async with await weft.open(tmp_path / "copy.db") as copy:
        await copy.restore_export(tmp_path / "out")
        assert len(await receipts(copy, session)) == len(SAID) + 2
