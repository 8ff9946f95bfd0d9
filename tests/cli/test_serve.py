"""The parts of `weft serve`: who cannot go on ends all of them."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

import weft
from fake_telegram import TOKEN, FakeTelegram
from weft.channels.http_settings import HttpChannelSettings
from weft.channels.telegram import Telegram
from weft.channels.telegram_settings import TelegramSettings
from weft.cli.serve import _check_streams, _part, _stay_on
from weft.config import Config
from weft.gateway.background import LearnSettings
from weft.gateway.stream_settings import StreamSettings
from wired import Echo


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


async def test_an_answer_that_comes_while_the_server_stops_is_still_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEFT_HOME", str(tmp_path))
    config = Config(
        telegram=TelegramSettings(allowed=("7",)),
        learn=LearnSettings(enabled=False),
        http=HttpChannelSettings(enabled=False),
    )
    with FakeTelegram() as fake:
        model = Echo()
        model.gate.clear()
        app = await weft.connect(config, provider=model)
        telegram = Telegram(TOKEN, TelegramSettings(allowed=("7",), poll_seconds=1, api_url=fake.url))
        serving = asyncio.create_task(_stay_on(config, app, [telegram], []))
        fake.write("hello")
        await asyncio.wait_for(model.asked.wait(), 30)
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.wait_for(telegram._stopped.wait(), 30)
        model.gate.set()
        await asyncio.wait_for(serving, 30)
        await app.close()

        assert [one["text"] for one in fake.sent] == ["echo hello"]
