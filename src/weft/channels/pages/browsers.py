"""Browsers that have signed in: a cookie that names one, and the proof that a form is ours."""

from __future__ import annotations

import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256

from starlette.datastructures import Headers
from starlette.requests import cookie_parser

from weft.channels.bind import is_same

_MOST = 1_000
_IDLE_SECONDS = 30 * 86_400
_LINK_SECONDS = 600


@dataclass(slots=True)
class _SignedIn:
    """The token that a browser signed in with, which is checked again at each request."""

    token: str
    used_at: float


class Browsers:
    """Cookies of browsers. The token of one that signed in stays in the memory of this process.

    A cookie is random and says nothing. The proof of a form is derived from the cookie with a secret of this
    process: a page of another site knows neither.
    """

    def __init__(self, port: int = 0, clock: Callable[[], float] = time.monotonic) -> None:
        self.port = port
        self._clock, self._secret = clock, secrets.token_bytes(32)
        self._tokens = OrderedDict[str, _SignedIn]()
        self._links: dict[str, tuple[str, float]] = {}

    @property
    def cookie_name(self) -> str:
        """Return the name of the cookie: servers on other ports of a machine share its cookies."""
        return f"weft_{self.port}"

    def cookie_of(self, header: str) -> str:
        """Return our cookie in a header `Cookie`; empty if there is none."""
        # Not `SimpleCookie`: it reads nothing at all if a cookie of another port has a character too many.
        return cookie_parser(header).get(self.cookie_name, "")

    def authorization(self, headers: Headers) -> str:
        """Return what a browser's cookie stands for: the header with the token that it signed in with."""
        token = self.token_of(self.cookie_of(headers.get("cookie", "")))
        return f"Bearer {token}" if token else ""

    def token_of(self, cookie: str) -> str:
        """Return the token with which a browser signed in; empty if it did not, or long ago."""
        signed_in, now = self._tokens.get(cookie), self._clock()
        if signed_in is None:
            return ""
        if now - signed_in.used_at > _IDLE_SECONDS:
            del self._tokens[cookie]
            return ""
        signed_in.used_at = now
        self._tokens.move_to_end(cookie)
        return signed_in.token

    def sign_in(self, token: str) -> str:
        """Remember that a browser showed a token. Returns its new cookie."""
        cookie = secrets.token_urlsafe(32)
        self._tokens[cookie] = _SignedIn(token, self._clock())
        if len(self._tokens) > _MOST:
            self._tokens.popitem(last=False)
        return cookie

    def sign_out(self, cookie: str) -> None:
        self._tokens.pop(cookie, None)

    def make_link(self, token: str) -> str:
        """Make a key that signs one browser in, once, within the next minutes."""
        key = secrets.token_urlsafe(32)
        self._links[key] = token, self._clock()
        return key

    def take_link(self, key: str) -> str:
        """Return the token behind a key, which is used up then; empty if it is unknown or too old."""
        token, made_at = self._links.pop(key, ("", 0.0))
        return token if self._clock() - made_at <= _LINK_SECONDS else ""

    def new_cookie(self) -> str:
        """Return a cookie for a browser that needs no token."""
        return secrets.token_urlsafe(32)

    def proof(self, cookie: str) -> str:
        """Return what a form of ours carries for a browser with this cookie."""
        return hmac.new(self._secret, cookie.encode(), sha256).hexdigest()

    def proves(self, cookie: str, proof: str) -> bool:
        """Return whether a form comes from a page that we sent to this browser."""
        return bool(cookie) and is_same(proof, self.proof(cookie))

    def cookie_header(self, cookie: str, *, secure: bool) -> str:
        """Return the header `Set-Cookie` of a cookie; of an empty one, the header that removes it."""
        age = 0 if not cookie else _IDLE_SECONDS
        more = "; Secure" if secure else ""
        return f"{self.cookie_name}={cookie}; Path=/; Max-Age={age}; HttpOnly; SameSite=Lax{more}"
