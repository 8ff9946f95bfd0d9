"""The middleware before all routes: host, origin, token, rate limit and size of a request."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from urllib.parse import quote, urlencode

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from weft.channels.bind import HERE, is_address, is_everywhere, url_host
from weft.channels.http_settings import HttpChannelSettings
from weft.channels.limits import RateLimit
from weft.channels.metrics import Metrics
from weft.channels.pages.browsers import Browsers
from weft.channels.pages.places import FILES, OPEN_PAGES, SIGN_IN, is_page, see_other, wants_html
from weft.channels.problems import problem
from weft.channels.speaker import SPEAKER, Tokens
from weft.errors import StoreError

_log = logging.getLogger(__name__)
GONE = 499
"""The status of a request whose client disconnected."""
OPEN = "/api/health"
"""The one route that needs no token, for monitors."""
_NO_TOKEN = "This server needs a token: send it as `Authorization: Bearer TOKEN`."  # noqa: S105
_BEARER = {"www-authenticate": "Bearer"}


class Guard:
    """Refuses requests before they reach a route.

    A page that uses DNS rebinding sends a foreign `Host`, and a page of another site a foreign `Origin`: both
    are refused, with a token or without.
    """

    def __init__(
        self,
        app: ASGIApp,
        settings: HttpChannelSettings,
        tokens: Tokens,
        metrics: Metrics,
        browsers: Browsers,
    ) -> None:
        self._app, self._settings, self._tokens = app, settings, tokens
        self._metrics, self._browsers = metrics, browsers
        self._limit = RateLimit(settings.requests_per_minute)
        self._names = {name.lower() for name in (url_host(settings.host), *HERE, *settings.names)}
        self._any_address = is_everywhere(settings.host)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status = 500

        async def send_noted(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            refusal = self._wrong_place(scope) or await self._unauthorized(scope)
            body = None if refusal else await self._body(scope, receive)
            if refusal or body is None:
                _log.debug("request refused", extra={"status": refusal.status_code if refusal else 413})
                await (refusal or self._too_large())(scope, receive, send_noted)
            else:
                await self._app(scope, _ReplayBody(body, receive), send_noted)
        except ClientDisconnect:
            status = GONE
        finally:
            route = getattr(scope.get("route"), "path", "none")
            self._metrics.request(route, status)

    def _wrong_place(self, scope: Scope) -> Response | None:
        """Return a refusal of a request that names another server, or comes from a page of another one."""
        headers = Headers(scope=scope)
        host, origin = headers.get("host", "").lower(), headers.get("origin", "").lower()
        if not self._is_ours(host):
            return problem(403, "This server is not called by that name.", code="wrong_host")
        if origin and origin not in (f"http://{host}", f"https://{host}"):
            return problem(403, "Pages of other sites may not ask this server.", code="wrong_origin")
        return None

    async def _unauthorized(self, scope: Scope) -> Response | None:
        """Return a refusal of a request that comes too often or without a token. Else note who speaks.

        A cookie counts for pages only: what programs ask needs the header.
        """
        headers, path = Headers(scope=scope), scope["path"]
        if path.startswith(FILES):
            return None
        authorization = headers.get("authorization", "")
        if not authorization and is_page(path):
            authorization = self._browsers.authorization(headers)
        try:
            speaker = await self._tokens.authenticate(authorization)
        except StoreError as error:  # without a store nobody but the owner's own token is known
            speaker, failure = None, problem(503, str(error), code="unavailable")
        else:
            failure = problem(401, _NO_TOKEN, code="invalid_api_key", headers=_BEARER)
        address = str((scope.get("client") or ("",))[0])
        client = f"token of {speaker.person}" if speaker and authorization else address
        if wait := self._limit.wait_seconds(client):
            sentence = f"There were too many requests in the last minute: ask again in {wait} seconds."
            return problem(429, sentence, code="rate_limit_exceeded", headers={"retry-after": str(wait)})
        scope[SPEAKER] = speaker
        if speaker is not None or path in (OPEN, *OPEN_PAGES):
            return None
        if is_page(path) and failure.status_code == 401 and wants_html(headers):
            query = scope["query_string"].decode("latin-1")
            place = f"{quote(path)}?{query}" if query else quote(path)
            return see_other(f"{SIGN_IN}?{urlencode({'next': place})}")
        return failure

    def _is_ours(self, host: str) -> bool:
        name = host[: host.find("]") + 1] if host.startswith("[") else host.partition(":")[0]
        return name in self._names or (self._any_address and is_address(name))

    async def _body(self, scope: Scope, receive: Receive) -> bytes | None:
        """Read the whole body; None if it is too large, which a chunked one shows only as it comes."""
        limit = self._settings.max_body_bytes
        length = Headers(scope=scope).get("content-length", "")
        if length.isdigit() and int(length) > limit:
            return None
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            body += message.get("body", b"")
            if len(body) > limit:
                return None
            if not message.get("more_body"):
                return bytes(body)

    def _too_large(self) -> Response:
        sentence = f"A request may have at most {self._settings.max_body_bytes} bytes: send less."
        return problem(413, sentence, code="too_large")


@dataclass(slots=True)
class _ReplayBody:
    """Replays a body that was read already, then passes on to the client."""

    body: bytes
    receive: Receive
    is_replayed: bool = False

    async def __call__(self) -> Message:
        if self.is_replayed:
            return await self.receive()
        self.is_replayed = True
        return {"type": "http.request", "body": self.body, "more_body": False}
