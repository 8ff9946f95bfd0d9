"""Settings of the Telegram channel. Every command reads them, and few need the channel itself."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class TelegramSettings:
    """The bot's token or where it is, the senders that may write, and the address of the Bot API."""

    token: str = field(default="", repr=False)
    allowed: tuple[str, ...] = ()
    poll_seconds: int = 30
    api_url: str = "https://api.telegram.org"
