"""What streams have seen is kept with what they told, and holds neither names nor texts."""

from pathlib import Path

import weft
from weft.types.envelope import Inbound, Seen, notice_id

ONE = Seen(stream="notes", item="one", signature="1", digest="d", times=1, block_id="b1")


def notice(rest: str = "1") -> Inbound:
    return Inbound(
        channel="telegram",
        conversation="c",
        sender="7",
        text="A file is new.",
        external_id=notice_id("notes", rest),
        kind="notice",
        origin="import",
        blocks=("b1", "b2"),
    )


async def test_nothing_is_known_before_the_first_look_or_of_another_place(store: weft.Store) -> None:
    assert await store.streams.find_seen("notes", "here") is None

    await store.streams.start("notes", "here", "import", [])

    assert await store.streams.find_seen("notes", "here") == {}
    assert await store.streams.find_seen("notes", "there") is None
    assert await store.streams.find_seen("other", "here") is None


async def test_a_notice_is_stored_with_its_items_and_comes_back_as_it_was(
    store: weft.Store, tmp_path: Path
) -> None:
    await store.streams.start("notes", "here", "import", [])
    assert await store.mailbox.receive(notice(), [ONE]) is not None
    assert await store.mailbox.receive(notice(), [ONE]) is None
    await store.close()

    async with await weft.open(tmp_path / "weft.db") as again:
        assert [one.message for one in await again.mailbox.list_waiting()] == [notice()]
        assert await again.streams.find_seen("notes", "here") == {"one": ONE}


async def test_a_stream_that_begins_anew_forgets_what_was_but_counts_on(store: weft.Store) -> None:
    await store.streams.start("notes", "here", "import", [ONE])
    await store.streams.start("notes", "there", "import", [])

    [seen] = (await store.streams.find_seen("notes", "there") or {}).values()

    assert (seen.signature, seen.digest, seen.times, seen.block_id) == ("", "", 1, "b1")


async def test_a_stream_is_waiting_while_one_of_its_own_notices_is_not_answered(store: weft.Store) -> None:
    inbox_id = await store.mailbox.receive(notice())
    assert inbox_id is not None

    assert await store.streams.has_open_notice("notes")
    assert not await store.streams.has_open_notice("note")
    await store.mailbox.answer(inbox_id, "Noted.")
    assert not await store.streams.has_open_notice("notes")


async def test_the_blocks_that_were_written_longest_ago_are_named_first(store: weft.Store) -> None:
    items = [Seen(stream="notes", item=str(n), times=1, block_id=f"b{n}") for n in range(4)]
    await store.streams.start("notes", "here", "import", [])
    for one in (*items, Seen(stream="notes", item="0", times=2, block_id="b0")):
        await store.streams.save([one])
    await store.streams.save([Seen(stream="notes", item="1", signature="touched", times=1, block_id="b1")])

    assert await store.streams.list_oldest_blocks("notes", 2) == ["b2", "b1"]
    await store.streams.forget_block("b1")
    assert await store.streams.list_oldest_blocks("notes", 2) == ["b2"]
