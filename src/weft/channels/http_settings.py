"""How programs reach the assistant over HTTP, and how much of it they get."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpChannelSettings:
    """Where the server listens, by which further `names` it is called, and its limits."""

    enabled: bool = True
    token: str = field(default="", repr=False)
    host: str = "127.0.0.1"
    port: int = 8713
    names: tuple[str, ...] = ()
    max_body_bytes: int = 4 * 1024 * 1024
    max_messages: int = 10_000
    max_tools: int = 512
    requests_per_minute: int = 120
