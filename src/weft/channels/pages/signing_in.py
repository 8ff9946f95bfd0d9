"""Signing in with a token or a one-time link, signing out, and the files that pages load."""

from __future__ import annotations

from pathlib import PurePosixPath

from starlette.requests import Request
from starlette.responses import FileResponse, Response

from weft.channels.pages.desk import Desk, Work
from weft.channels.pages.places import ENTER, FILES, SIGN_IN, local_path, see_other
from weft.channels.problems import NotFound
from weft.channels.speaker import Tokens
from weft.web.page import STATIC

_KINDS = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_FILES = frozenset(path.name for path in STATIC.iterdir())
_WRONG = "This is not a token of this server. `weft token add` makes one."
_USED = "This link was used already, or is too old: get a new one, or sign in with a token."


class SigningIn:
    """The routes before all others."""

    def __init__(self, desk: Desk, tokens: Tokens) -> None:
        self._desk, self._tokens = desk, tokens

    def all(self) -> list[tuple[str, str, Work]]:
        return [
            (SIGN_IN, "GET", self.show),
            (SIGN_IN, "POST", self.sign_in),
            ("/sign-out", "POST", self.sign_out),
            (ENTER, "GET", self.enter),
            (f"{FILES}{{name}}", "GET", self.file),
        ]

    async def show(self, request: Request) -> Response:
        """Ask for a token."""
        return await self._page(request, request.query_params.get("next", "/"))

    async def sign_in(self, request: Request) -> Response:
        """Check a token, and remember the browser."""
        form = await self._desk.form(request)
        token, place = form.get("token", "").strip(), form.get("next", "/")
        if await self._tokens.find(token) is None:
            return await self._page(request, place, problem=_WRONG, status=403)
        return self._entered(request, token, place)

    async def sign_out(self, request: Request) -> Response:
        """Forget the browser."""
        browsers = self._desk.browsers
        browsers.sign_out(browsers.cookie_of(request.headers.get("cookie", "")))
        secure = request.url.scheme == "https"
        return see_other(SIGN_IN, set_cookie=browsers.cookie_header("", secure=secure))

    async def enter(self, request: Request) -> Response:
        """Sign in the browser that opens a one-time link."""
        is_opened = request.method == "GET"  # a program that only looks whether the address exists uses HEAD
        token = self._desk.browsers.take_link(request.query_params.get("key", "")) if is_opened else ""
        if not token:
            return await self._page(request, "/", problem=_USED, status=403)
        return self._entered(request, token, request.query_params.get("next", "/"))

    async def file(self, request: Request) -> Response:
        """Send a style, a script or a picture of ours."""
        name = request.path_params["name"]
        kind, path = _KINDS.get(PurePosixPath(name).suffix), STATIC / name
        if kind is None or name not in _FILES:
            raise NotFound("There is no such file.", code="not_found")
        # The address has a hash of the file in it, so a browser may keep it for good.
        headers = {
            "cache-control": "public, max-age=31536000, immutable",
            "x-content-type-options": "nosniff",
        }
        return FileResponse(path, media_type=kind, headers=headers)

    def _entered(self, request: Request, token: str, place: str) -> Response:
        browsers = self._desk.browsers
        browsers.sign_out(browsers.cookie_of(request.headers.get("cookie", "")))
        cookie = browsers.cookie_header(browsers.sign_in(token), secure=request.url.scheme == "https")
        return see_other(local_path(place), set_cookie=cookie)

    async def _page(self, request: Request, place: str, *, problem: str = "", status: int = 200) -> Response:
        return await self._desk.html(
            request, "sign_in", status=status, title="Sign in", place=local_path(place), problem=problem
        )
