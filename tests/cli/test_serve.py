"""The parts of `weft serve`: who cannot go on ends all of them."""

import asyncio

import pytest

import weft
from weft.cli.serve import _check_streams, _part
from weft.config import Config
from weft.gateway.stream_settings import StreamSettings


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


def test_a_stream_to_a_channel_that_is_not_open_is_refused() -> None:
    def config(channel: str) -> Config:
        stream = StreamSettings(name="a", folder="/", channel=channel, conversation="c", sender="s")
        return Config(streams=(stream,))

    _check_streams(config("terminal"), [])
    for channel, words in (
        ("telegram", "not open: known are terminal"),
        ("terminl", "did you mean 'terminal'"),
    ):
        with pytest.raises(weft.ConfigError, match=words):
            _check_streams(config(channel), [])
