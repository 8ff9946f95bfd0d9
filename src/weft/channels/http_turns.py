"""Turns over HTTP: receipts, the exact requests, how they differ, replays, and why something was shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import Query
from starlette.requests import Request
from starlette.responses import Response

from weft.channels.problems import JsonResponse, NotFound
from weft.channels.speaker import is_own, speaker_of
from weft.channels.turn_views import cache_lines
from weft.gateway.assistant import Assistant
from weft.memory.base import Store
from weft.turn.inspect import TurnView, compare, replays, summary_line, view, view_before, why
from weft.types.codec import dump_json, to_dict
from weft.wire.items import join

_NO_TURN = "There is no turn of that id with a receipt."
Words = Annotated[str, Query(min_length=1, max_length=2000)]
Limit = Annotated[int, Query(ge=1, le=1000)]
TurnId = Annotated[str, Query(max_length=100)]


class TurnRoutes:
    """The routes about turns. A person sees their own, the owner all."""

    def __init__(self, assistant: Assistant) -> None:
        self._assistant = assistant

    def all(self) -> list[tuple[str, str, Callable[..., Any]]]:
        return [
            ("/api/turns/{turn_id}", "GET", self.receipt),
            ("/api/turns/{turn_id}/requests", "GET", self.requests),
            ("/api/turns/{turn_id}/diff", "GET", self.diff),
            ("/api/turns/{turn_id}/replay", "GET", self.replay),
            ("/api/turns/{turn_id}/why", "GET", self.why),
            ("/api/sessions/{session_id}/turns", "GET", self.turns),
        ]

    async def receipt(self, request: Request, turn_id: str) -> Response:
        """Show the receipt of a turn: what the model saw, what was left out, and why."""
        _, turn = await self._turn(request, turn_id)
        if turn.receipt is None:
            raise NotFound(_NO_TURN, code="turn_not_found")
        return JsonResponse(turn.receipt.to_json())

    async def requests(self, request: Request, turn_id: str) -> Response:
        """Show the requests of a turn as they were sent, and how much of each the one before had."""
        _, turn = await self._turn(request, turn_id)
        rows = [
            {
                "round": one.round,
                "bytes": one.request.size,
                "shared_bytes": one.shared_bytes,
                "digest": one.request.digest,
                "request": join(one.request),
            }
            for one in turn.requests
        ]
        return JsonResponse(dump_json({"cache": cache_lines(turn), "requests": rows}))

    async def diff(self, request: Request, turn_id: str, other: TurnId = "") -> Response:
        """Compare the request of a turn with that of another, or with the one before."""
        store, turn = await self._turn(request, turn_id)
        if other:
            _, before = await self._turn(request, other)
        else:
            found = await view_before(store, turn.info)
            if found is None:
                raise NotFound("There is no turn before this one.", code="turn_not_found")
            before = found
        data = {"before": before.info.id, "after": turn.info.id, **to_dict(compare(before, turn))}
        return JsonResponse(dump_json(data))

    async def replay(self, request: Request, turn_id: str) -> Response:
        """Put the requests of a turn together again, and compare their bytes with those that were sent."""
        _, turn = await self._turn(request, turn_id)
        return JsonResponse(dump_json({"replays": to_dict(list(replays(turn)))}))

    async def why(self, request: Request, turn_id: str, text: Words) -> Response:
        """Say whether the model saw something in a turn, and why or why not."""
        store, turn = await self._turn(request, turn_id)
        return JsonResponse(dump_json({"reasons": to_dict(await why(store, turn, text))}))

    async def turns(self, request: Request, session_id: str, limit: Limit = 100) -> Response:
        """List the turns of a session, newest first."""
        store = await self._assistant.store.find()
        session = await store.sessions.find(session_id) if store is not None else None
        if store is None or session is None or not await is_own(store, speaker_of(request), session):
            raise NotFound("There is no session of that id.", code="session_not_found")
        views = [await view(store, info) for info in await store.turns.page(session_id, limit=limit)]
        rows = [{**to_dict(one.info), "about": summary_line(one)} for one in views]
        return JsonResponse(dump_json({"turns": rows}))

    async def _turn(self, request: Request, turn_id: str) -> tuple[Store, TurnView]:
        """Read a turn of the speaker. Raises NotFound."""
        store = await self._assistant.store.find()
        info = await store.turns.number(turn_id) if store is not None else None
        session = await store.sessions.find(info.session_id) if store is not None and info else None
        if store is None or info is None or session is None:
            raise NotFound(_NO_TURN, code="turn_not_found")
        if not await is_own(store, speaker_of(request), session):
            raise NotFound(_NO_TURN, code="turn_not_found")
        return store, await view(store, info)
