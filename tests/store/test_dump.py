"""The whole store as a folder and back: nothing is lost, nothing is half there."""

import json
import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

import weft
from weft.store.sqlite.tables import TABLES
from weft.types.envelope import Inbound, Outbound, Seen
from weft.types.epoch import Attachment, Epoch, EpochStep
from weft.types.schema import LogSchema, MapSchema
from weft.types.sent import SentRequest, TurnRecord
from weft.types.session import Fold, SideCall

from samples import assistant, result, user

TEXT = st.text(max_size=30)


async def fill(store: weft.Store) -> str:
    """One of everything; the id of the session."""
    session = await store.sessions.find_or_create("telegram", "c1", "42", agent_id="iris")
    await store.messages.append(session.id, user("Where is the marlin?"), assistant("", "call-1"))
    signed = weft.Message(role="assistant", content="\u2028 at sea", provider_data={"signature": "\ud800"})
    await store.messages.append(session.id, result("call-1", "x"), signed)
    await store.facts.set("telegram:42", "city", "Rome")
    await store.facts.set("telegram:42", "city", "Lisbon")
    await store.instructions.add("telegram:42", "Always answer in Spanish.")
    await store.people.link("web:1", "telegram:42")
    await store.summaries.add("telegram", "42", "about boats", session_id=session.id)
    await store.tasks.add("telegram:42", "pack", datetime(2026, 12, 1, tzinfo=UTC))
    await store.memory.create_block("iris", "../no/tes '\"", description="d", pinned=True)
    for word in ("one ", "two ", "three"):
        await store.memory.append_to_block("iris", "../no/tes '\"", word)
    await store.memory.undo_block("iris", "../no/tes '\"")
    await store.memory.create_block("iris", "events", schema=LogSchema(display_limit=3))
    await store.memory.share_block("iris", "events", "rose", weft.Permission.READ_ONLY)
    await store.memory.insert_archival("iris", "a note on the marlin", {"from": ["log", None, 1.5]})
    await store.auth.create_token("phone")
    await store.auth.confirm_pairing(await store.auth.offer_pairing("telegram", "42"))
    await store.purge("what nobody ever said")
    receipt = (await weft.ContextBuilder().build("Hi")).receipt
    assert receipt is not None
    await store.turns.finish(
        await store.turns.begin(session.id, "Hi"),
        replace(receipt, model="m", ratio=1.2),
        user("Hi"),
        record=TurnRecord(
            step=EpochStep(epoch=Epoch(why="start"), attachments={0: Attachment(text="<context:now>")}),
            requests=(SentRequest(head="{}", items=('{"role": "user"}',)),),
        ),
    )
    await store.turns.add_call(SideCall(kind="fold", session_id=session.id, error="\u2028"))
    await store.turns.step(await store.turns.begin(session.id, "Still here?"), assistant("", "call-2"))
    inbound = await store.mailbox.receive(Inbound(channel="t", conversation="c", sender="s", text="x"))
    assert inbound is not None
    await store.mailbox.refuse(inbound, "not paired")
    seen = Seen(stream="notes", item="i", signature="1-2", digest="d", times=1, block_id="b")
    await store.streams.start("notes", "somewhere", "import", [Seen(stream="notes", item="i")])
    await store.mailbox.receive(
        Inbound(
            channel="t",
            conversation="c",
            sender="s",
            text="new",
            kind="notice",
            origin="import",
            blocks=("b", "c"),
        ),
        [seen],
    )
    await store.mailbox.enqueue(Outbound(channel="t", conversation="c", text="Hello."))
    await store.turns.save_result(session.id, "search", "all that was found")
    await store.messages.add_fold(session.id, Fold(last=2, text="a question about a marlin"))
    return session.id


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


async def test_a_round_trip_gives_the_same_bytes_and_the_same_store(
    store: weft.Store, tmp_path: Path
) -> None:
    session = await fill(store)
    counts = await store.export(tmp_path / "first")

    async with await weft.open(tmp_path / "other.db") as other:
        assert await other.restore_export(tmp_path / "first") == counts
        await other.export(tmp_path / "second")

        assert contents(tmp_path / "first") == contents(tmp_path / "second")
        assert await other.check() == []
        assert await other.messages.all(session) == await store.messages.all(session)
        assert await other.facts.history("web:1", "city") == await store.facts.history("web:1", "city")
        assert [hit.content for hit in await other.memory.search("iris", "marlin")] == [
            hit.content for hit in await store.memory.search("iris", "marlin")
        ]
        assert await other.memory.redo_block("iris", "../no/tes '\"") is True
        assert await other.memory.get_rendered_content("iris", "../no/tes '\"") == "one two three"
        assert (await other.sessions.find_or_create("telegram", "c1", "42")).id == session
        assert await other.mailbox.list_waiting() == await store.mailbox.list_waiting()
        assert await other.streams.find_seen("notes", "somewhere") == await store.streams.find_seen(
            "notes", "somewhere"
        )
    exported = {table.name for table in TABLES if table.exported}
    assert exported - {"block_snapshots"} == {name for name, count in counts.items() if count}


async def test_a_long_history_keeps_its_snapshot(store: weft.Store, tmp_path: Path) -> None:
    await store.memory.create_block("iris", "notes")
    for number in range(120):
        await store.memory.append_to_block("iris", "notes", f"{number} ")

    counts = await store.export(tmp_path / "out")
    async with await weft.open(tmp_path / "other.db") as other:
        await other.restore_export(tmp_path / "out")
        await other.memory.append_to_block("iris", "notes", "more")
        text = await other.memory.get_rendered_content("iris", "notes") or ""

    assert counts["block_snapshots"] == 1
    assert text.split() == [*map(str, range(120)), "more"]


async def test_an_export_has_the_text_of_each_block_in_a_file_below_its_folder(
    store: weft.Store, tmp_path: Path
) -> None:
    await fill(store)

    await store.export(tmp_path / "out")

    texts = {p.read_text("utf-8") for p in (tmp_path / "out" / "blocks").rglob("*.txt")}
    assert texts == {"one two ", ""}
    assert all(path.resolve().is_relative_to(tmp_path / "out") for path in (tmp_path / "out").rglob("*"))


async def test_an_export_to_an_existing_path_is_refused_and_changes_nothing(
    store: weft.Store, tmp_path: Path
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("x", "utf-8")
    (tmp_path / "file").write_text("x", "utf-8")

    for place in ("out", "file"):
        with pytest.raises(weft.StoreError, match="already: name a new folder"):
            await store.export(tmp_path / place)

    assert contents(tmp_path / "out") == {"mine.txt": b"x"}
    assert not [name for name in os.listdir(tmp_path) if "part" in name]


async def test_a_place_that_cannot_be_written_to_is_named(store: weft.Store) -> None:
    with pytest.raises(weft.StoreError, match="/proc/x cannot be written"):
        await store.export("/proc/x")


async def test_an_import_into_a_store_that_is_not_empty_is_refused(store: weft.Store, tmp_path: Path) -> None:
    await fill(store)
    await store.export(tmp_path / "out")

    with pytest.raises(weft.StoreError, match="already: import into a new one"):
        await store.restore_export(tmp_path / "out")


def _drop_line(folder: Path) -> None:
    path = folder / "messages.jsonl"
    path.write_text(path.read_text("utf-8").removesuffix("\n").rpartition("\n")[0] + "\n", "utf-8")


def _edit(name: str, **changes: object) -> object:
    def work(folder: Path) -> None:
        path = folder / f"{name}.jsonl"
        first, _, rest = path.read_text("utf-8").partition("\n")
        path.write_text(json.dumps(json.loads(first) | changes) + "\n" + rest, "utf-8")

    return work


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (_drop_line, "has 4 rows and should have 5"),
        (lambda folder: (folder / "facts.jsonl").unlink(), "facts.jsonl is missing"),
        (lambda folder: (folder / "facts.jsonl").write_text("{\n", "utf-8"), "facts.jsonl, line 1"),
        (lambda folder: (folder / "facts.jsonl").write_text("[]\n", "utf-8"), "facts.jsonl, line 1"),
        (lambda folder: (folder / "facts.jsonl").write_bytes(b"\xff\n"), "facts.jsonl"),
        (lambda folder: (folder / "manifest.json").unlink(), "no folder that Weft exported"),
        (lambda folder: (folder / "manifest.json").write_text("[]", "utf-8"), "damaged"),
        (lambda folder: (folder / "manifest.json").write_text('{"format": 9, "rows": {}}'), "format 9"),
        (_edit("blocks", block_type="odd"), "blocks.jsonl, line 1"),
        (_edit("blocks", schema={"kind": "odd"}), "blocks.jsonl, line 1"),
        (_edit("block_updates", blob="?"), "block_updates.jsonl, line 1"),
        (_edit("block_updates", block_id="gone"), "block_updates.jsonl, line 1"),
        (_edit("messages", tool_calls=[3]), "messages.jsonl, line 1"),
        (_edit("messages", seq="x"), "messages.jsonl, line 1"),
        (_edit("messages", extra=1), "'extra' is not known here"),
    ],
)
async def test_a_damaged_folder_is_refused_whole(
    store: weft.Store, tmp_path: Path, damage: object, words: str
) -> None:
    await fill(store)
    await store.export(tmp_path / "out")
    damage(tmp_path / "out")  # type: ignore[operator]

    async with await weft.open(tmp_path / "other.db") as other:
        with pytest.raises(weft.StoreError, match=words):
            await other.restore_export(tmp_path / "out")
        counts = await other.export(tmp_path / "after")

    assert not any(counts.values())


LABEL = TEXT.filter(lambda text: bool(text.strip()) and text.splitlines() == [text])


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(TEXT, max_size=5), names=st.lists(LABEL, max_size=3, unique=True))
async def test_whatever_was_written_survives_a_round_trip(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], names: list[str]
) -> None:
    folder = tmp_path_factory.mktemp("trip")
    async with await weft.open(":memory:") as store, await weft.open(":memory:") as other:
        session = await store.sessions.new("a", "b", "c")
        await store.messages.append(session.id, *(weft.Message(role="user", content=t) for t in texts))
        for name in names:
            await store.memory.create_block("iris", name, schema=MapSchema(fields=()))
        await store.export(folder / "first")
        await other.restore_export(folder / "first")
        await other.export(folder / "second")

        assert contents(folder / "first") == contents(folder / "second")
        assert await other.messages.all(session.id) == await store.messages.all(session.id)
