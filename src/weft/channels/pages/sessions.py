"""The conversations, and one of them over time: tokens, cache, epochs, folds and cost of its turns."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from weft.channels.pages.desk import Desk, Work, number_of
from weft.types.session import Session
from weft.web.over_time import over_time

_PAGE = 60
"""Turns on a page: as many as one picture shows well."""
_SESSIONS = 50


class SessionPages:
    """The pages about conversations. A person sees their own, the owner all."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def all(self) -> list[tuple[str, str, Work]]:
        return [("/sessions", "GET", self.list), ("/sessions/{session_id}", "GET", self.show)]

    async def list(self, request: Request) -> Response:
        """List conversations, the last used first."""
        page = number_of(request, "page", default=1) or 1
        rows = await sessions_of(self._desk, request, limit=page * _SESSIONS + 1)
        start = (page - 1) * _SESSIONS
        return await self._desk.html(
            request,
            "sessions",
            title="Conversations",
            sessions=rows[start : start + _SESSIONS],
            page=page,
            has_more=len(rows) > start + _SESSIONS,
        )

    async def show(self, request: Request) -> Response:
        """Show the turns of a conversation as a picture and as a table."""
        store, session = await self._desk.session(request, request.path_params["session_id"])
        before = number_of(request, "before")
        turns = list(reversed(await store.turns.briefs(session.id, limit=_PAGE, before=before)))
        newest = next(iter(await store.turns.page(session.id, limit=1)), None)
        last = newest.number if newest else 0
        folds, calls = await store.messages.list_folds(session.id), await store.turns.list_calls(session.id)
        return await self._desk.html(
            request,
            "over_time",
            title=session.title or "Over time",
            session=session,
            turns=turns,
            picture=over_time(turns, folds),
            folds=folds,
            calls=calls[-_PAGE:],
            older=turns[0].info.number if turns and turns[0].info.number > 1 else 0,
            newer=turns[-1].info.number + _PAGE + 1 if turns and turns[-1].info.number < last else 0,
            last=last,
        )


async def sessions_of(desk: Desk, request: Request, *, limit: int) -> list[Session]:
    """Return the conversations that the speaker may see, the last used first."""
    store, speaker = await desk.store(), desk.speaker(request)
    if store is None:
        return []
    if speaker.is_owner:
        return list(await store.sessions.list(limit=limit))
    person = (await desk.caller(request)).person
    return list(await store.sessions.list(limit=limit, senders=await store.people.senders(person)))
