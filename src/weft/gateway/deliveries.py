"""What goes out: answers, in the order of each place, tried again where that may help."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from weft.errors import ChannelError
from weft.gateway.assistant import App
from weft.types.post import Outbound
from weft.types.records import Delivery

_log = logging.getLogger(__name__)


class Channel(Protocol):
    """The part of a channel that is used here; see `channels/base.py`."""

    @property
    def name(self) -> str: ...

    async def send(self, message: Outbound) -> None: ...

    async def typing(self, conversation: str) -> None: ...

    async def ask(self, conversation: str, question: str, *, yes: str, no: str) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewaySettings:
    """How many turns run at once, how many messages of one conversation may wait, and for how long to try.

    A message that comes `while_running` a turn of its conversation waits for its own turn, or it steers: the
    model reads it before its next round. A question to agree to something is a no after `consent_seconds`.
    """

    at_once: int = 8
    max_waiting: int = 20
    while_running: Literal["wait", "steer"] = "wait"
    consent_seconds: float = 300.0
    typing_seconds: float = 4.0
    attempts: int = 8
    stop_seconds: float = 60.0


class Deliveries:
    """Sends what is in the outbox. It is marked there before it is sent, and again after."""

    def __init__(self, app: App, channels: Mapping[str, Channel], settings: GatewaySettings) -> None:
        self._app, self._channels, self._settings = app, channels, settings
        self._outgoing: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._held: dict[tuple[str, str], float] = {}
        self._to_send = asyncio.Event()
        self._stopping = False

    def look(self) -> None:
        """Look into the outbox now."""
        self._to_send.set()

    async def run(self) -> None:
        """Send until `stop`."""
        while not self._stopping:
            self._to_send.clear()
            await self._send_all()
            try:
                async with asyncio.timeout(1.0):
                    await self._to_send.wait()
            except TimeoutError:
                continue

    async def stop(self) -> None:
        """Send what is there, and wait until it has arrived, but not for ever."""
        self._stopping = True
        self._to_send.set()
        await self._send_all()
        if self._outgoing:
            await asyncio.wait(list(self._outgoing.values()), timeout=self._settings.stop_seconds)

    async def _send_all(self) -> None:
        store = await self._app.store.get()
        for delivery in await store.post.due(time.time(), self._channels):
            self._send_soon(delivery)

    def _send_soon(self, delivery: Delivery) -> None:
        """Send behind what goes to the same place already; other places do not wait for it."""
        place = (delivery.message.channel, delivery.message.conversation)
        before = self._outgoing.get(place)

        async def work() -> None:
            if before is not None:
                await asyncio.wait([before])
            await self._send(delivery, place)
            if self._outgoing.get(place) is asyncio.current_task():
                del self._outgoing[place]

        self._outgoing[place] = asyncio.create_task(work())

    async def _send(self, delivery: Delivery, place: tuple[str, str]) -> None:
        post, channel = (await self._app.store.get()).post, self._channels.get(delivery.message.channel)
        if (held := self._held.get(place, 0.0)) > time.time():
            await post.again(delivery.id, held)  # what goes to the same place before it comes first
            return
        try:
            if channel is None:
                raise ChannelError(f"There is no channel {delivery.message.channel!r} here.")
            await channel.send(delivery.message)
        except ChannelError as error:
            wait = error.retry
            if wait is None or delivery.attempts >= self._settings.attempts:
                _log.error("an answer could not be delivered: %s", error)
                await post.undeliverable(delivery.id)
            else:
                self._held[place] = time.time() + wait * 2 ** (delivery.attempts - 1)
                await post.again(delivery.id, self._held[place])
        else:
            await post.sent(delivery.id)
            self._held.pop(place, None)
