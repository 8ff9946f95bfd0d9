"""Memory blocks held in a dict."""

import weft
from weft.testing import InMemoryBlocks


def block(label: str, shared_from: str = "") -> weft.RenderedBlock:
    return weft.RenderedBlock(id=label, label=label, content="", shared_from=shared_from)


async def labels(blocks: InMemoryBlocks, agent: str) -> list[str]:
    return [found.label for found in await blocks.rendered_blocks(agent)]


async def test_an_agent_sees_its_own_blocks_and_no_others() -> None:
    blocks = InMemoryBlocks({"iris": [block("a")], "otto": [block("b")]})

    assert await labels(blocks, "iris") == ["a"]
    assert await labels(blocks, "otto") == ["b"]
    assert await labels(blocks, "nobody") == []


async def test_shared_blocks_follow_ones_own_and_both_keep_their_order() -> None:
    blocks = InMemoryBlocks({"iris": [block("s1", "otto"), block("b"), block("s0", "otto"), block("a")]})

    assert await labels(blocks, "iris") == ["b", "a", "s1", "s0"]


async def test_blocks_can_be_added_later() -> None:
    blocks = InMemoryBlocks()

    blocks.put("iris", block("a"), block("b"))
    blocks.put("iris", block("c"))

    assert await labels(blocks, "iris") == ["a", "b", "c"]


async def test_the_given_lists_and_the_lists_given_out_are_the_callers_own() -> None:
    given = [block("a")]
    blocks = InMemoryBlocks({"iris": given})

    given.append(block("b"))
    list(await blocks.rendered_blocks("iris")).clear()
    blocks.put("iris", block("c"))

    assert await labels(blocks, "iris") == ["a", "c"]
    assert len(given) == 2


async def test_only_what_a_turn_shows_is_read_for_it_from_a_store_as_from_a_dict() -> None:
    async with await weft.open(":memory:") as store:
        memory = store.memory
        kinds = weft.BlockType
        for label, kind, pinned in (
            ("core", kinds.CORE, False),
            ("pinned", kinds.WORKING, True),
            ("working", kinds.WORKING, False),
            ("archival", kinds.ARCHIVAL, True),
            ("named", kinds.ARCHIVAL, False),
        ):
            await memory.create_block("iris", label, block_type=kind, pinned=pinned)
        await memory.create_block("rose", "lent", block_type=kinds.CORE)
        await memory.create_block("rose", "unused")
        for label in ("lent", "unused"):
            await memory.share_block("rose", label, "iris", weft.Permission.READ_ONLY)
        everything = await memory.rendered_blocks("iris")
        named = {block.id for block in everything if block.label == "named"} | {"gone"}
        plain = InMemoryBlocks({"iris": everything})

        shown = [block.label for block in await memory.rendered_blocks("iris", named=named)]

        assert shown == ["core", "pinned", "named", "lent"]
        assert [block.label for block in await plain.rendered_blocks("iris", named=named)] == shown
        assert len(everything) == 7
