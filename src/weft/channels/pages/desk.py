"""What all pages share: who looks, the store, forms and their proof, and errors as pages."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from weft.channels.pages.browsers import Browsers
from weft.channels.pages.places import local_path
from weft.channels.problems import NotFound, Refused, placed
from weft.channels.speaker import Speaker, Tokens, is_own, speaker_of
from weft.errors import WeftError
from weft.gateway.assistant import Assistant
from weft.memory.base import Store
from weft.types.request import Caller
from weft.types.session import Session, TurnInfo
from weft.web.page import POLICY, page

Work = Callable[[Request], Awaitable[Response]]
PROOF = "proof"
PROOF_HEADER = "x-weft-proof"
MOST_FIELDS = 1_000
_HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}
_ONLY_READS = "`weft inspect` only reads. To change anything, run `weft serve` and open its page."
_TYPED = ("text", "value", "description", "title")
"""The fields of forms into which people type more than a word."""
_NO_PROOF = "This form was not sent from a page of this server, or the page is old: load it again."


@dataclass(frozen=True, slots=True, kw_only=True)
class PageSettings:
    """What the pages are told by the program: whether they may write, and where things are.

    `recipes` is the folder for recipes that a person saves. `check_health` looks for what is wrong, as
    `weft doctor` does.
    """

    can_write: bool = True
    recipes: Path | None = None
    check_health: Callable[[], Awaitable[Any]] | None = None
    max_attachment_bytes: int = 1_000_000


DEFAULT_PAGES = PageSettings()


class Desk:
    """What the pages have in common. When the server stops it sets `closing`, which ends streams."""

    def __init__(
        self, assistant: Assistant, browsers: Browsers, settings: PageSettings, tokens: Tokens
    ) -> None:
        self.assistant, self.browsers, self.settings = assistant, browsers, settings
        self._tokens, self.closing = tokens, asyncio.Event()

    def route(self, work: Work) -> Work:
        """Return a route whose errors are pages. One that changes something needs the proof of its form."""

        async def answer(request: Request) -> Response:
            try:
                if request.method not in ("GET", "HEAD"):
                    await self._check(request)
                return await work(request)
            except (WeftError, HTTPException) as error:
                return await self.failed(request, error)

        return answer

    async def html(self, request: Request, template: str, /, *, status: int = 200, **values: Any) -> Response:
        """Answer with a page. A browser without a cookie gets one, which forms need."""
        cookie = self.browsers.cookie_of(request.headers.get("cookie", ""))
        new = "" if cookie else self.browsers.new_cookie()
        speaker = request.scope.get("weft.speaker")
        text = page(
            template,
            here=request.url.path,
            proof=self.browsers.proof(cookie or new),
            can_write=self.settings.can_write,
            speaker=speaker,
            is_owner=speaker is None or speaker.is_owner,
            is_signed_in=bool(self.browsers.token_of(cookie)),
            **values,
        )
        headers = dict(_HEADERS)
        if new:
            headers["set-cookie"] = self.browsers.cookie_header(new, secure=request.url.scheme == "https")
        return HTMLResponse(text, status, headers)

    async def failed(self, request: Request, error: WeftError | HTTPException) -> Response:
        """Answer with a page that says what went wrong."""
        if isinstance(error, HTTPException):
            status, sentence = error.status_code, str(error.detail)
        else:
            status, sentence = placed(error)[0], str(error)
        if request.headers.get(PROOF_HEADER):  # a script asks: it shows the sentence in its place
            return Response(sentence, status, media_type="text/plain; charset=utf-8")
        written = await self._written(request)
        back = urlsplit(request.headers.get("referer", ""))
        place = f"{back.path}?{back.query}" if back.query else back.path
        return await self.html(
            request,
            "problem",
            status=status,
            title="Problem",
            sentence=sentence,
            back=local_path(place) if back.netloc == request.url.netloc else "",
            written=written,
        )

    async def _written(self, request: Request) -> list[str]:
        """Return what a person typed into a form that is refused, so that nobody has to type it again."""
        if request.method != "POST":
            return []
        with suppress(HTTPException):
            return [value for name, value in await self.fields(request) if name in _TYPED and value.strip()]
        return []

    async def form(self, request: Request) -> dict[str, str]:
        """Return the fields of a form; of those with one name, the last."""
        return dict(await self.fields(request))

    async def fields(self, request: Request) -> list[tuple[str, str]]:
        """Return the fields of a form in their order."""
        body = (await request.body()).decode("utf-8", "replace")
        try:
            return parse_qsl(body, keep_blank_values=True, max_num_fields=MOST_FIELDS)
        except ValueError:
            raise Refused(400, f"A form has at most {MOST_FIELDS} fields.", code="too_large") from None

    async def _check(self, request: Request) -> None:
        """Check that a form comes from one of our pages, and that this server writes at all."""
        cookie = self.browsers.cookie_of(request.headers.get("cookie", ""))
        proof = request.headers.get(PROOF_HEADER, "")
        if not proof and "json" not in request.headers.get("content-type", ""):
            proof = (await self.form(request)).get(PROOF, "")
        if not self.browsers.proves(cookie, proof):
            raise Refused(403, _NO_PROOF, code="no_proof")
        if not self.settings.can_write and request.url.path not in ("/sign-in", "/sign-out"):
            raise Refused(403, _ONLY_READS, code="read_only")

    # --- who looks, and what they may see

    async def is_still_there(self, request: Request) -> bool:
        """Return whether who began to look still may: signed in, with a token that was not revoked."""
        headers = request.headers
        authorization = headers.get("authorization", "") or self.browsers.authorization(headers)
        return await self._tokens.authenticate(authorization) == speaker_of(request)

    async def store(self) -> Store | None:
        """Return the store, if there is anything in it yet."""
        return await self.assistant.store.find()

    async def open_store(self) -> Store:
        """Return the store, which is made if there is none."""
        return await self.assistant.store.get()

    def speaker(self, request: Request) -> Speaker:
        return speaker_of(request)

    async def caller(self, request: Request) -> Caller:
        """Return who looks, with the person behind them. The owner's agent is the assistant's own."""
        return await self.assistant.engine.identify(speaker_of(request).caller())

    async def session(self, request: Request, session_id: str) -> tuple[Store, Session]:
        """Return a session that the speaker may see.

        Raises:
            NotFound: there is none, or it is somebody else's.
        """
        store = await self.store()
        session = await store.sessions.find(session_id) if store is not None else None
        if store is None or session is None or not await is_own(store, speaker_of(request), session):
            raise NotFound("There is no conversation of that id.", code="session_not_found")
        titled = await store.sessions.list(limit=1, prefix=session_id)
        return store, next((one for one in titled if one.id == session_id), session)

    async def turn(self, request: Request, turn_id: str) -> tuple[Store, Session, TurnInfo]:
        """Return a turn that the speaker may see. Raises NotFound."""
        store = await self.store()
        info = await store.turns.number(turn_id) if store is not None else None
        if info is None:
            raise NotFound("There is no turn of that id.", code="turn_not_found")
        store, session = await self.session(request, info.session_id)
        return store, session, info


async def read_json(request: Request) -> dict[str, Any]:
    """Return the object that a script of ours sends."""
    try:
        data = json.loads(await request.body())
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict):
        raise Refused(400, "This must be a JSON object.", code="invalid_value")
    return data


def number_of(request: Request, name: str, *, default: int | None = None) -> int | None:
    """Return a number from 1 up from the address of a page; the default if it is missing or none."""
    text = request.query_params.get(name, "")
    return max(int(text), 1) if text.isascii() and text.isdigit() and len(text) < 12 else default
