"""How programs reach the assistant over HTTP, and how much of it they get."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpChannelSettings:
    """Where the server listens, by which further `names` it is called, and its limits.

    A client has so many seconds for the headers of a request and for its body, and may be idle or not read
    its answer for so long.
    """

    enabled: bool = True
    token: str = field(default="", repr=False)
    host: str = "127.0.0.1"
    port: int = 8713
    names: tuple[str, ...] = ()
    max_body_bytes: int = 4 * 1024 * 1024
    max_messages: int = 10_000
    max_tools: int = 512
    requests_per_minute: int = 120
    header_seconds: float = 10.0
    body_seconds: float = 60.0
    idle_seconds: float = 15.0
    send_seconds: float = 60.0
    max_connections: int = 1024
    max_connections_per_address: int = 256
