"""The parts of `weft serve`: who cannot go on ends all of them."""

import asyncio

import pytest

import weft
from weft.cli.serve import _part


async def test_a_part_that_cannot_go_on_ends_the_server() -> None:
    stopped = asyncio.Event()

    async def broken() -> None:
        raise weft.StoreError("the disk is gone")

    with pytest.raises(weft.StoreError):
        await _part(broken(), stopped)
    assert stopped.is_set()


async def test_a_part_that_comes_to_its_end_does_not() -> None:
    stopped = asyncio.Event()

    await _part(asyncio.sleep(0), stopped)

    assert not stopped.is_set()
