"""Pattern's block types and the tables of who may come in, beyond what a context shows of them."""

import logging
from collections.abc import Sequence
from pathlib import Path

import pytest

import weft
from weft.types.delivery import Paired

LOG, CORE, WORKING = weft.BlockType.LOG, weft.BlockType.CORE, weft.BlockType.WORKING


async def test_P15_tokens_and_pairing_codes_are_kept_as_hashes_in_the_one_file(tmp_path: Path) -> None:
    async with await weft.open(tmp_path / "weft.db") as store:
        token = await store.auth.create_token("phone")
        code = await store.auth.offer_pairing("telegram", "42")

        assert await store.auth.find_token(token) == ("owner", True)
        assert await store.auth.find_token(f"{token}x") == (None, True)
        assert await store.auth.is_paired("telegram", "42") is False

        assert await store.auth.confirm_pairing(code.lower()) == Paired(channel="telegram", sender="42")
        assert await store.auth.list_paired() == [Paired(channel="telegram", sender="42")]

    held = (tmp_path / "weft.db").read_bytes()
    assert b"phone" in held
    assert token.encode() not in held
    assert code.encode() not in held


@pytest.mark.parametrize(
    "write",
    [
        lambda memory: memory.update_block_text("iris", "diary", "other"),
        lambda memory: memory.replace_in_block("iris", "diary", "first", "other"),
        lambda memory: memory.undo_block("iris", "diary"),
    ],
)
async def test_P16_a_log_block_only_grows_whatever_its_permission(store: weft.Store, write: object) -> None:
    await store.memory.create_block("iris", "diary", block_type=LOG, permission=weft.Permission.ADMIN)
    await store.memory.append_to_block("iris", "diary", "first ")

    with pytest.raises(weft.PermissionDenied, match="log and keeps what it holds"):
        await write(store.memory)  # type: ignore[operator]

    await store.memory.append_to_block("iris", "diary", "second")
    document = await store.memory.get_block("iris", "diary")
    assert document is not None
    with pytest.raises(weft.PermissionDenied, match="log and keeps what it holds"):
        document.set_text("other")
    assert document.render() == "first second"


async def test_P16_only_the_system_changes_what_a_core_or_a_log_block_is(store: weft.Store) -> None:
    for kind in (CORE, LOG):
        await store.memory.create_block("iris", kind.value, block_type=kind)

        with pytest.raises(weft.PermissionDenied, match="stays one"):
            await store.memory.set_block_type("iris", kind.value, WORKING)
        assert await store.memory.list_blocks_by_type("iris", kind) != []

        await store.memory.set_block_type("iris", kind.value, WORKING, is_system=True)
        assert await store.memory.list_blocks_by_type("iris", kind) == []


async def test_P29_an_entry_without_a_time_is_shown_with_the_one_it_was_written_at(store: weft.Store) -> None:
    await store.memory.create_block("iris", "events", schema=weft.LogSchema(display_limit=5))
    document = await store.memory.get_block("iris", "events")
    assert document is not None

    document.append_log_entry({"message": "woke"})
    document.append_log_entry({"timestamp": "2026-01-01", "message": "slept"})

    newest, oldest = document.render().split("\n")
    assert newest == "[2026-01-01] slept"
    assert oldest.startswith("[20")
    assert oldest.endswith("Z] woke")
    assert document.log_entries() == [{"timestamp": "2026-01-01", "message": "slept"}, {"message": "woke"}]


class Boats:
    """An embedder that knows one thing: what is about boats."""

    name, dimensions = "boats", 8

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [[1.0 if any(w in t for w in ("boat", "ship")) else -1.0] + [0.5] * 7 for t in texts]


@pytest.mark.parametrize("mode", [weft.SearchMode.VECTOR, weft.SearchMode.HYBRID, weft.SearchMode.AUTO])
async def test_P36_with_an_embedder_a_search_finds_by_meaning(mode: weft.SearchMode) -> None:
    async with await weft.open(":memory:", embedder=Boats()) as store:
        await store.memory.insert_archival("iris", "green tea")
        await store.memory.insert_archival("iris", "the ship leaves at seven")

        hits = await store.memory.search("iris", "boat", weft.SearchOptions(mode=mode))

    assert hits[0].content == "the ship leaves at seven"
    assert hits[0].score > hits[-1].score
    assert hits[0].mode == (weft.SearchMode.VECTOR if mode == "vector" else weft.SearchMode.HYBRID)


async def test_P36_hybrid_without_an_embedder_is_fts_and_says_so(
    store: weft.Store, caplog: pytest.LogCaptureFixture
) -> None:
    await store.memory.insert_archival("iris", "the boat")

    with caplog.at_level(logging.WARNING):
        (hit,) = await store.memory.search("iris", "boat", weft.SearchOptions(mode=weft.SearchMode.HYBRID))

    assert hit.mode == weft.SearchMode.FTS
    assert "`fts`" in caplog.text


def test_P17_there_are_six_permissions_by_these_names() -> None:
    names = [str(permission) for permission in weft.Permission]

    assert names == ["ReadOnly", "Partner", "Human", "Append", "ReadWrite", "Admin"]
