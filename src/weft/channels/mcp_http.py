"""An MCP server over HTTP: on loopback for everybody, elsewhere only with the token."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import uvicorn
from mcp.server import MCPServer
from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from weft.channels.bind import HERE, bearer_token, check_place, is_same, listen, url_host


async def serve(
    server: MCPServer[Any],
    *,
    host: str,
    port: int,
    token: str = "",
    names: Iterable[str] = (),
    ready: Callable[[str], None] = lambda url: None,
) -> None:
    """Serve at `/mcp` until a signal ends the process; `ready` gets the address.

    `names` are further names of this machine that a request's `Host` may have.

    Raises:
        ConfigError: the address needs a token.
        ChannelError: nothing can listen there.
    """
    check_place(host, token)
    listening = listen(host, port)
    security = _security({url_host(host), *HERE, *names})
    app: ASGIApp = server.streamable_http_app(transport_security=security)
    if token:
        app = _TokenOnly(app, token)
    # uvicorn's own signal handlers end open streams. Only warnings are logged, and nothing to stdout.
    config = uvicorn.Config(app, log_config=None, log_level="warning", access_log=False)
    ready(f"http://{url_host(host)}:{listening.getsockname()[1]}/mcp")
    with listening:
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
