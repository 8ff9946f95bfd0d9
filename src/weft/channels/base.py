"""What a channel is: it brings messages in, and carries answers out. Everything else is the gateway's.

A new channel is one file with a class like this, and one line in `compose.py`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from weft.types.envelope import Inbound, Outbound

Submit = Callable[[Inbound], Awaitable[bool]]
"""Takes a message over. When it returns the message is safe, and the channel may tell its sender's server so.
False if it was known already."""


class Channel(Protocol):
    """One way to reach the assistant."""

    @property
    def name(self) -> str: ...

    async def run(self, submit: Submit) -> None:
        """Bring messages in until `stop` is called. Troubles of the line are waited out, not raised.

        Raises:
            ChannelError: it can never work so, such as with a wrong token.
        """
        ...

    async def send(self, message: Outbound) -> None:
        """Carry an answer out. When it returns, it has arrived.

        Raises:
            ChannelError: it could not be delivered; `retry` says whether trying again may help.
        """
        ...

    async def typing(self, conversation: str) -> None:
        """Show that an answer is on its way, for a few seconds, if the channel can."""
        ...

    async def ask(self, conversation: str, question: str, *, yes: str, no: str) -> None:
        """Ask a person to agree. Their answer comes in as a message with one of the two texts, or a plain
        `yes` or `no`; a channel with buttons gives them these texts.

        Raises:
            ChannelError: it could not be asked.
        """
        ...

    async def stop(self) -> None:
        """Bring nothing in any more. Answers that come until `close` are still sent."""
        ...

    async def close(self) -> None:
        """Let go of the line."""
        ...
