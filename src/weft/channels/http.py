"""The assistant over HTTP: OpenAI's API, so that any app gains memory, and an API of our own.

On loopback everybody may ask, elsewhere only with the token.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import aclosing, contextmanager
from dataclasses import replace
from typing import Annotated, Any
from uuid import uuid4

import uvicorn
from fastapi import FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import PlainTextResponse, Response

from weft.channels.bind import check_place, listen, url_host
from weft.channels.guard import GONE, OPEN, Guard
from weft.channels.http_blocks import BlockRoutes, Sender
from weft.channels.http_bodies import AskedBody, ChatBody, ContextBody, ProblemBody, ResponsesBody, TurnBody
from weft.channels.http_json import limited
from weft.channels.http_search import SearchRoutes
from weft.channels.http_settings import HttpChannelSettings
from weft.channels.http_turns import TurnRoutes
from weft.channels.listener import limited_protocol, quiet_accepting
from weft.channels.metrics import Metrics
from weft.channels.openai_api import chat_answer, from_chat, from_responses, new_id, response
from weft.channels.openai_stream import chat_stream, encoded, response_stream
from weft.channels.pages.browsers import Browsers
from weft.channels.pages.desk import DEFAULT_PAGES, Desk, PageSettings
from weft.channels.pages.routes import add_pages, refusals
from weft.channels.problems import JsonResponse, NotFound, described, on_bug, on_error, on_invalid, on_refusal
from weft.channels.speaker import Tokens, speaker_of
from weft.channels.sse import EventStream, while_connected
from weft.errors import ChannelError, PermissionDenied, StoreError, WeftError
from weft.gateway.assistant import Assistant
from weft.gateway.engine import DEFAULT_MODEL
from weft.memory.base import Store
from weft.offload import offloaded
from weft.providers.base import collected
from weft.types.codec import dump_json, to_dict
from weft.types.reply import Done, Event
from weft.types.request import TurnRequest
from weft.types.version import VERSION

_PROBLEMS: dict[int | str, dict[str, Any]] = {"4XX": {"model": ProblemBody}, "5XX": {"model": ProblemBody}}
_GRACE_SECONDS = 5
"""How long clients have to take their answers after the last turn was ended."""
_STOPPING = "This server is stopping and waits for the answer no longer: ask again in a moment."
_log = logging.getLogger(__name__)
_NO_MODEL = "There is no such model here: GET /v1/models lists them."

_Read = Callable[[Mapping[str, Any], str], TurnRequest]
Limit = Annotated[int, Query(ge=1, le=1000)]


def make_app(
    assistant: Assistant,
    settings: HttpChannelSettings,
    *,
    token: str = "",
    pages: PageSettings = DEFAULT_PAGES,
    browsers: Browsers | None = None,
) -> FastAPI:
    """Make the application that a server runs. One whose pages only read has no other routes.

    Raises:
        ConfigError: others could reach it there, and there is no token that they must know.
    """
    check_place(settings.host, token)
    metrics = Metrics()
    app = FastAPI(
        title="Weft",
        version=VERSION,
        docs_url=None,
        redoc_url=None,
        responses=_PROBLEMS,
        default_response_class=JsonResponse,
        exception_handlers={
            WeftError: on_error,
            RequestValidationError: on_invalid,
            ClientDisconnect: _on_gone,
            Exception: on_bug,
        },
    )
    tokens, browsers = Tokens(assistant, token), browsers or Browsers(settings.port)
    app.add_middleware(Guard, settings=settings, tokens=tokens, metrics=metrics, browsers=browsers)
    routes = app.state.routes = _Routes(assistant, metrics)
    desk = app.state.desk = Desk(assistant, browsers, pages, tokens)
    add_pages(app.router, desk, tokens, routes)
    app.add_exception_handler(HTTPException, refusals(desk, on_refusal))
    app.router.route_class = limited(settings)
    for path, method, work in _routes_for_programs(assistant, routes, can_write=pages.can_write):
        app.add_api_route(path, work, methods=[method], response_model=None)
    return app


def _routes_for_programs(
    assistant: Assistant, routes: _Routes, *, can_write: bool
) -> list[tuple[str, str, Callable[..., Any]]]:
    if not can_write:
        return [(OPEN, "GET", routes.health)]
    return [
        *routes.all(),
        *SearchRoutes(assistant).all(),
        *TurnRoutes(assistant).all(),
        *BlockRoutes(assistant).all(),
    ]


class _Uvicorn(uvicorn.Server):
    """A server that leaves signals to the command that runs it."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class HttpServer:
    """The application on its port.

    Raises:
        ConfigError: others could reach it there, and there is no token that they must know.
    """

    def __init__(
        self,
        settings: HttpChannelSettings,
        token: str = "",
        pages: PageSettings = DEFAULT_PAGES,
        announce: Callable[[str, Browsers], None] | None = None,
    ) -> None:
        check_place(settings.host, token)
        self._settings, self._token, self._pages, self._announce = settings, token, pages, announce

    async def run(self, assistant: Assistant, stopped: asyncio.Event, say: Callable[[str], None]) -> None:
        """Serve until `stopped`. Running turns then have `gateway.stop_seconds` to end.

        Raises:
            ChannelError: nothing can listen there.
        """
        listening = listen(self._settings.host, self._settings.port)
        port = listening.getsockname()[1]
        browsers = Browsers(port)
        app = make_app(assistant, self._settings, token=self._token, pages=self._pages, browsers=browsers)
        seconds = assistant.lanes.settings.stop_seconds
        # Only warnings are logged, and nothing to stdout. Anybody can send the headers of a proxy.
        config = uvicorn.Config(
            app,
            http=limited_protocol(self._settings),
            ws="none",
            timeout_keep_alive=self._settings.idle_seconds,  # type: ignore[arg-type]
            log_config=None,
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=math.ceil(seconds) + _GRACE_SECONDS,
        )
        url = f"http://{url_host(self._settings.host)}:{port}"
        if self._announce is None:
            say(f"HTTP is open at {url}")
        else:
            self._announce(url, browsers)
        with listening, quiet_accepting():
            server = _Uvicorn(config)
            serving = asyncio.create_task(server.serve(sockets=[listening]))
            stopping = asyncio.create_task(stopped.wait())
            await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
            stopping.cancel()
            server.should_exit = True
            app.state.desk.closing.set()
            await asyncio.wait({serving}, timeout=seconds)
            app.state.routes.end_turns()
            await serving


async def _on_gone(_: Request, error: Exception) -> Response:
    return Response(status_code=GONE)


class _Routes:
    """The routes, one method each. OpenAPI shows their docstrings."""

    def __init__(self, assistant: Assistant, metrics: Metrics) -> None:
        self._assistant, self._metrics = assistant, metrics
        self._running, self._is_ending = set[asyncio.Task[Any]](), False

    def end_turns(self) -> None:
        """End the turns that run. Their clients get an error in place of the answer."""
        self._is_ending = True
        for task in self._running:
            task.cancel()

    def all(self) -> list[tuple[str, str, Callable[..., Any]]]:
        return [
            ("/v1/chat/completions", "POST", self.chat),
            ("/v1/responses", "POST", self.responses),
            ("/v1/models", "GET", self.models),
            ("/v1/models/{model:path}", "GET", self.model),
            ("/api/turns", "POST", self.turn),
            ("/api/context", "POST", self.context),
            ("/api/sessions", "GET", self.sessions),
            (OPEN, "GET", self.health),
            ("/metrics", "GET", self.metrics),
        ]

    # --- OpenAI's

    async def chat(self, request: Request, body: ChatBody) -> Response:
        """Answer as Chat Completions does, with what is remembered of whom `user` names."""
        asked = await self._asked(request, body, from_chat)
        model = asked.model or DEFAULT_MODEL
        if body.stream:
            usage = body.stream_options is not None and bool(body.stream_options.include_usage)
            events = chat_stream(self.events(asked), model, include_usage=usage)
            return EventStream(events, lambda sentence: encoded(described(502, sentence)))
        reply = await while_connected(request.receive, collected(self.events(asked)))
        return JsonResponse(chat_answer(reply, new_id("chatcmpl"), model))

    async def responses(self, request: Request, body: ResponsesBody) -> Response:
        """Answer as Responses does, with what is remembered of whom `user` names."""
        asked = await self._asked(request, body, from_responses)
        model = asked.model or DEFAULT_MODEL
        if body.stream:
            return EventStream(response_stream(self.events(asked), model), _failed_response)
        reply = await while_connected(request.receive, collected(self.events(asked)))
        return JsonResponse(response(new_id("resp"), model, reply, item_id=new_id("msg")))

    async def models(self) -> Response:
        """List the models that can be asked for."""
        return JsonResponse(
            {"object": "list", "data": [_model(name) for name in self._assistant.engine.models]}
        )

    async def model(self, model: str) -> Response:
        """Show one model."""
        if model not in self._assistant.engine.models:
            raise NotFound(_NO_MODEL, code="model_not_found")
        return JsonResponse(_model(model))

    # --- ours

    async def turn(self, request: Request, body: TurnBody) -> Response:
        """Answer a message or a slash command in a session; without one, in a new session."""
        asked = replace(_request(request, body), session=body.session or uuid4().hex, commands=True)
        reply = await while_connected(request.receive, collected(self.events(asked)))
        answer = {"turn": reply.turn_id, "session": reply.session_id, "reply": reply.text}
        more = {"notice": reply.notice, "not_done": [*reply.not_done]}
        return JsonResponse({**answer, **{name: value for name, value in more.items() if value}})

    async def context(self, request: Request, body: ContextBody) -> Response:
        """Build what the model would see with a message. No model is asked."""
        context = await self._assistant.preview(replace(_request(request, body), recipe=body.recipe))
        return JsonResponse(context.to_json(receipt=True))

    async def sessions(self, request: Request, sender: Sender = "", limit: Limit = 100) -> Response:
        """List sessions, the last used first: all for the owner, a person's own for them."""
        store, speaker = await self._store(), speaker_of(request)
        if store is None:
            return _rows("sessions", ())
        caller = await self._assistant.engine.identify(speaker.caller(sender))
        everybody = speaker.is_owner and not sender
        senders = None if everybody else await store.people.senders(caller.person)
        return _rows("sessions", await store.sessions.list(limit=limit, senders=senders))

    def about(self) -> Response:
        """Say to a program what this server is, and where to read on."""
        text = "An assistant with memory. The base URL for OpenAI's clients is /v1; read `weft docs http`."
        return JsonResponse({"name": "weft", "version": VERSION, "about": text, "openapi": "/openapi.json"})

    async def health(self) -> Response:
        """Report whether the server can answer."""
        try:
            store = await self._store()
            if store is not None:
                store.check_file()
                await store.sessions.list(limit=1)
        except StoreError as error:
            _log.exception("the store cannot be used")
            reason = {"reason": error.log_text} if error.log_text else {}
            return JsonResponse({"status": "unavailable", **reason}, 503)
        return JsonResponse({"status": "ok"})

    async def metrics(self, request: Request) -> Response:
        """Report numbers for Prometheus, to the owner."""
        if not speaker_of(request).is_owner:
            raise PermissionDenied("Only the owner may read the numbers of this server.")
        return PlainTextResponse(self._metrics.text(), media_type="text/plain; version=0.0.4")

    # --- both

    async def _asked(self, request: Request, body: AskedBody, read: _Read) -> TurnRequest:
        """Read a request of OpenAI's shape for a model that is offered here."""
        if body.model and body.model not in self._assistant.engine.models:
            raise NotFound(_NO_MODEL, code="model_not_found", param="model")
        size, sender = len(await request.body()), _user(request, body)
        return await offloaded(size, lambda: read(body.plain(), sender))

    async def _store(self) -> Store | None:
        return await self._assistant.store.find()

    async def events(self, request: TurnRequest) -> AsyncGenerator[Event]:
        """Yield the events of a request, and count its turn.

        Raises:
            ChannelError: the server stops, and the turn took too long.
        """
        with self._metrics.turn() as turn, self._until_ended():
            async with aclosing(self._assistant.handle(request)) as events:
                async for event in events:
                    turn.outcome = "answered" if isinstance(event, Done) else ""
                    yield event

    @contextmanager
    def _until_ended(self) -> Iterator[None]:
        """Make a turn one that `end_turns` can end."""
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - only tasks run coroutines
        self._running.add(task)
        try:
            yield
        except asyncio.CancelledError:
            if not self._is_ending:
                raise
            task.uncancel()
            raise ChannelError(_STOPPING) from None
        finally:
            self._running.discard(task)


def _user(request: Request, body: AskedBody) -> str:
    """Return the sender of a request of OpenAI's shape. A person's token decides it, whatever `user` says."""
    speaker = speaker_of(request)
    return speaker.sender(body.user or "" if speaker.is_owner else "")


def _request(request: Request, body: TurnBody | ContextBody) -> TurnRequest:
    caller = speaker_of(request).caller(body.sender)
    return TurnRequest(text=body.text, session=body.session, caller=caller)


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "weft"}


def _rows(name: str, rows: Any) -> Response:
    return JsonResponse(dump_json({name: to_dict(rows)}))


def _failed_response(sentence: str) -> bytes:
    """Report a failure after a response began. Its sequence number is unknown here; clients ignore it."""
    event = {
        "type": "error",
        "code": "server_error",
        "message": sentence,
        "param": None,
        "sequence_number": 0,
    }
    return encoded(event)
