"""All pages, each at its address."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Protocol

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Router

from weft.channels.pages.blocks import BlockPages
from weft.channels.pages.desk import Desk
from weft.channels.pages.facts import FactPages
from weft.channels.pages.people import PeoplePages
from weft.channels.pages.places import is_page, wants_html
from weft.channels.pages.recipes import RecipePages
from weft.channels.pages.sample import SamplePages
from weft.channels.pages.search import SearchPages
from weft.channels.pages.sessions import SessionPages
from weft.channels.pages.signing_in import SigningIn
from weft.channels.pages.system import SystemPages
from weft.channels.pages.talk import TalkPages
from weft.channels.pages.tasks import TaskPages
from weft.channels.pages.turns import TurnPages
from weft.channels.speaker import Tokens
from weft.types.reply import Event
from weft.types.request import TurnRequest

Handler = Callable[[Request, Exception], Awaitable[Response]]


class Programs(Protocol):
    """What programs have that pages use: the first address, and turns that end when the server stops."""

    def about(self) -> Response: ...

    def events(self, request: TurnRequest) -> AsyncGenerator[Event]: ...


def add_pages(router: Router, desk: Desk, tokens: Tokens, programs: Programs) -> None:
    """Add the routes of all pages. They stand in no description for programs."""
    talk, blocks = TalkPages(desk, programs.events), BlockPages(desk)

    async def first(request: Request) -> Response:
        return await talk.new(request) if wants_html(request.headers) else programs.about()

    router.add_route("/", desk.route(first), methods=["GET"])
    routes = [
        *SigningIn(desk, tokens).all(),
        *TurnPages(desk).all(),
        *talk.all(),
        *blocks.all(),
        *FactPages(desk, blocks).all(),
        *SessionPages(desk).all(),
        *RecipePages(desk).all(),
        *SamplePages(desk).all(),
        *SearchPages(desk).all(),
        *TaskPages(desk, blocks).all(),
        *PeoplePages(desk).all(),
        *SystemPages(desk).all(),
    ]
    for path, method, work in routes:
        router.add_route(path, desk.route(work), methods=[method], include_in_schema=False)


def refusals(desk: Desk, otherwise: Handler) -> Handler:
    """Return what answers an unknown address: a page for a browser, data for a program."""

    async def refuse(request: Request, error: Exception) -> Response:
        is_for_people = is_page(request.url.path) and wants_html(request.headers)
        if is_for_people and isinstance(error, HTTPException):
            sentence = "There is no such page." if error.status_code == 404 else error.detail
            return await desk.failed(request, HTTPException(error.status_code, sentence))
        return await otherwise(request, error)

    return refuse
