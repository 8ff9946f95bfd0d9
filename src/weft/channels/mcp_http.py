"""An MCP server over HTTP: on this machine for everybody, elsewhere only for those who know the token."""

from __future__ import annotations

import hmac
import ipaddress
import os
import socket
from collections.abc import Callable, Iterable
from typing import Any

import uvicorn
from mcp.server import MCPServer
from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from weft.errors import ChannelError, ConfigError

_HERE = ("127.0.0.1", "localhost", "[::1]")


def check_place(host: str, token: str) -> None:
    """Do nothing if a server may listen there.

    Raises:
        ConfigError: others could reach it, and there is no token that they must know.
    """
    if not token and not is_loopback(host):
        raise ConfigError(
            f"Others could reach a server at {host!r}: set WEFT_TOKEN to a secret that they must know, "
            "or leave --host out."
        )


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


async def serve(
    server: MCPServer[Any],
    *,
    host: str,
    port: int,
    token: str = "",
    names: Iterable[str] = (),
    ready: Callable[[str], None] = lambda url: None,
) -> None:
    """Serve at `/mcp` until the process is told to stop; `ready` hears the address.

    `names` are further names of this machine that a request may be meant for.

    Raises:
        ConfigError: it must not listen there.
        ChannelError: it cannot.
    """
    check_place(host, token)
    bare = host.strip("[]")
    listening = _listen(bare, port)
    shown = f"[{bare}]" if ":" in bare else bare
    app: ASGIApp = server.streamable_http_app(transport_security=_security({shown, *_HERE, *names}))
    if token:
        app = _TokenOnly(app, token)
    # Its own signal handlers end open streams; nothing but warnings is logged, and nothing to stdout.
    config = uvicorn.Config(app, log_config=None, log_level="warning", access_log=False)
    ready(f"http://{shown}:{listening.getsockname()[1]}/mcp")
    with listening:
        await uvicorn.Server(config).serve(sockets=[listening])


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        reason = os.strerror(error.errno).lower() if isinstance(error.errno, int) else str(error)
        raise ChannelError(
            f"Nothing can listen at {host} on port {port} ({reason}): give another --port or --host."
        ) from error


def _security(names: set[str]) -> TransportSecuritySettings:
    """Which hosts and origins a request may name: with others, a web page is playing tricks with DNS."""
    hosts = sorted(names)
    return TransportSecuritySettings(
        allowed_hosts=[*hosts, *(f"{name}:*" for name in hosts)],
        allowed_origins=[
            f"{scheme}://{name}{port}"
            for scheme in ("http", "https")
            for name in hosts
            for port in ("", ":*")
        ],
    )


class _TokenOnly:
    """Lets only requests through that carry the token."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app, self._expected = app, f"bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or self._is_right(scope):
            await self._app(scope, receive, send)
            return
        refusal = JSONResponse(
            {"error": "This server needs its token: send it as `Authorization: Bearer TOKEN`."},
            status_code=401,
            headers={"www-authenticate": "Bearer"},
        )
        await refusal(scope, receive, send)

    def _is_right(self, scope: Scope) -> bool:
        scheme, _, token = Headers(scope=scope).get("authorization", "").partition(" ")
        given = f"{scheme.lower()} {token.strip()}".encode()
        return scope["type"] == "http" and hmac.compare_digest(given, self._expected)
