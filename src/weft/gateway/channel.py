"""The protocol of a channel: it brings messages in and carries answers out. The desk does everything else."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import Protocol

from weft.gateway.assistant import Assistant
from weft.types.envelope import Inbound, Outbound

Submit = Callable[[Inbound], Awaitable[bool]]
"""Stores a message. When it returns the message is safe, and the channel may confirm it to its server.
Returns False if the message was known already."""


class Channel(Protocol):
    """One way to reach the assistant by messages that outlive a restart."""

    @property
    def name(self) -> str: ...

    @property
    def allowed(self) -> Collection[str]:
        """Ids of the senders that may write without being paired."""
        ...

    async def run(self, submit: Submit) -> None:
        """Bring messages in until `stop` is called. Passing failures are waited out, not raised.

        Raises:
            ChannelError: the channel can never work like this, such as with a wrong token.
        """
        ...

    async def send(self, message: Outbound) -> None:
        """Deliver an answer. When it returns, the answer has arrived.

        Raises:
            ChannelError: it could not be delivered; `retry` says whether trying again may help.
        """
        ...

    async def typing(self, conversation: str) -> None:
        """Show for a few seconds that an answer is on its way, if the channel can."""
        ...

    async def ask(self, conversation: str, question: str, *, yes: str, no: str) -> None:
        """Ask a person for consent.

        Their answer comes in as a message with one of the two texts, or a plain `yes` or `no`; a channel with
        buttons gives them these texts.

        Raises:
            ChannelError: it could not be asked.
        """
        ...

    async def stop(self) -> None:
        """Bring nothing in any more. Answers are still sent until `close`."""
        ...

    async def close(self) -> None:
        """Close the connection."""
        ...


class Server(Protocol):
    """A server that programs ask, and that answers while they wait."""

    async def run(self, assistant: Assistant, stopped: asyncio.Event, say: Callable[[str], None]) -> None:
        """Serve until `stopped`. `say` gets one line for the person who started it.

        Raises:
            ChannelError: nothing can listen there.
        """
        ...
