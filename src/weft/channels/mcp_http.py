"""An MCP server over HTTP: on loopback for everybody, elsewhere only with the token."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import uvicorn
from mcp.server import MCPServer
from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from weft.channels.bind import HERE, bearer_token, check_place, is_same, listen, url_host
from weft.channels.http_settings import HttpChannelSettings
from weft.channels.listener import limited_protocol, quiet_accepting

_GRACE_SECONDS = 5
"""How long open streams may take to end after a signal."""


async def serve(
    server: MCPServer[Any],
    settings: HttpChannelSettings,
    *,
    token: str = "",
    ready: Callable[[str], None] = lambda url: None,
) -> None:
    """Serve at `/mcp` until a signal ends the process; `ready` gets the address.

    The `names` of the settings are further names of this machine that a request's `Host` may have.

    Raises:
        ConfigError: the address needs a token.
        ChannelError: nothing can listen there.
    """
    check_place(settings.host, token)
    listening = listen(settings.host, settings.port)
    host = url_host(settings.host)
    security = _security({host, *HERE, *settings.names})
    app: ASGIApp = server.streamable_http_app(
        transport_security=security, max_request_body_size=settings.max_body_bytes
    )
    if token:
        app = _TokenOnly(app, token)
    # uvicorn's own signal handlers end open streams. Only warnings are logged, and nothing to stdout.
    config = uvicorn.Config(
        app,
        http=limited_protocol(settings),
        ws="none",
        timeout_keep_alive=settings.idle_seconds,  # type: ignore[arg-type]
        timeout_graceful_shutdown=_GRACE_SECONDS,
        log_config=None,
        log_level="warning",
        access_log=False,
    )
    ready(f"http://{host}:{listening.getsockname()[1]}/mcp")
    with listening, quiet_accepting():
        await uvicorn.Server(config).serve(sockets=[listening])


def _security(names: set[str]) -> TransportSecuritySettings:
    """Return the hosts and origins that a request may name, against DNS rebinding."""
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
    """Lets only requests with the token through."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app, self._token = app, token

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
        header = Headers(scope=scope).get("authorization", "")
        return scope["type"] == "http" and is_same(bearer_token(header), self._token)
