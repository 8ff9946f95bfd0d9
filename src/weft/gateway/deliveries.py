"""Sending the outbox: answers in the order of each conversation, retried where that may help."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from contextlib import suppress

from weft.errors import ChannelError, StoreError
from weft.gateway.channel import Channel
from weft.gateway.lazy_store import LazyStore
from weft.gateway.settings import GatewaySettings
from weft.types.delivery import Delivery

_log = logging.getLogger(__name__)

DOUBTFUL = "I was interrupted while I was sending you an answer. If it did not arrive, write `/last`."


class Deliveries:
    """Sends what is in the outbox. Each message is marked there before it is sent, and again after."""

    def __init__(self, store: LazyStore, channels: Mapping[str, Channel], settings: GatewaySettings) -> None:
        self._store, self._channels, self._settings = store, channels, settings
        self._outgoing: set[asyncio.Task[None]] = set()
        self._busy: set[tuple[str, str]] = set()
        self._looking = asyncio.Lock()
        self._to_send = asyncio.Event()
        self._stopping = False

    def look(self) -> None:
        """Wake the sender: something is in the outbox."""
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
        """Send what is there, and wait until it has arrived, within the time limit."""
        self._stopping = True
        self._to_send.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(self._settings.stop_seconds):
                while await self._send_all() or self._outgoing:
                    await asyncio.wait(self._outgoing)

    async def _send_all(self) -> int:
        """Begin to send what is due. Returns how many messages that is."""
        store = await self._store.get()
        async with self._looking:
            due = await store.mailbox.claim_due(time.time(), self._channels, busy=self._busy)
            for delivery in due:
                self._send_soon(delivery)
        return len(due)

    def _send_soon(self, delivery: Delivery) -> None:
        """Send in a task of its own. The next message to the same conversation waits for it."""
        self._busy.add((delivery.message.channel, delivery.message.conversation))
        sending = asyncio.create_task(self._contained(delivery))
        self._outgoing.add(sending)
        sending.add_done_callback(self._outgoing.discard)

    async def _contained(self, delivery: Delivery) -> None:
        """Send one answer. Whatever goes wrong with it, the next one is sent."""
        try:
            await self._send(delivery)
        except StoreError as error:  # it stays marked, and the next start reports it
            _log.warning("the outcome of a delivery could not be stored: %s", error)
        except Exception:  # noqa: BLE001 - one answer must not take the others with it
            _log.exception("an answer could not be delivered")
            await (await self._store.get()).mailbox.mark_failed(delivery.id)
        finally:
            self._busy.discard((delivery.message.channel, delivery.message.conversation))
            self.look()

    async def _send(self, delivery: Delivery) -> None:
        post, channel = (await self._store.get()).mailbox, self._channels.get(delivery.message.channel)
        try:
            if channel is None:
                raise ChannelError(f"There is no channel {delivery.message.channel!r} here.")
            await channel.send(delivery.message)
        except ChannelError as error:
            wait = error.retry
            if error.doubtful:
                _log.warning("nobody knows whether an answer arrived: %s", error)
                await post.mark_failed(delivery.id, note=DOUBTFUL)
            elif wait is None or delivery.attempts >= self._settings.attempts:
                _log.error("an answer could not be delivered: %s", error)
                await post.mark_failed(delivery.id)
            else:
                at = time.time() + wait * 2 ** (delivery.attempts - 1)
                await post.reschedule(delivery.id, at, arrived=error.arrived)
        else:
            await post.mark_sent(delivery.id)
