"""The chat: conversations with their turns, answers as they come, files, and questions for consent."""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as NoBase64
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

from starlette.requests import Request
from starlette.responses import Response

from weft.channels.attachments import Attachment, attachment_of, with_attachments
from weft.channels.pages.desk import Desk, Work, number_of, read_json
from weft.channels.pages.places import see_other
from weft.channels.pages.sessions import sessions_of
from weft.channels.pages.talking import Handle, Questions, answer_events, encoded
from weft.channels.problems import JsonResponse, Refused
from weft.channels.sse import EventStream
from weft.errors import EmptyMessage
from weft.memory.base import Store
from weft.providers.base import collected
from weft.types.escape import sendable
from weft.types.message import Message
from weft.types.request import TurnRequest
from weft.types.session import IMPORTED, Session, TurnInfo
from weft.web.markdown import drawn

_EXCHANGES, _SIDEBAR, _MOST_FILES, _MOST_NAME = 30, 30, 20, 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """What was said from one message of a person to the next, and the turn that answered it."""

    turn: TurnInfo | None
    messages: tuple[Message, ...]


class TalkPages:
    """The chat and what it sends."""

    def __init__(self, desk: Desk, handle: Handle) -> None:
        self._desk, self._handle = desk, handle
        self._questions = Questions(desk.assistant.lanes.settings.consent_seconds)

    def all(self) -> list[tuple[str, str, Work]]:
        return [
            ("/talk", "GET", self.new),
            ("/talk", "POST", self.say_without_script),
            ("/talk/say", "POST", self.say),
            ("/talk/answer", "POST", self.answer),
            ("/talk/{session_id}", "GET", self.show),
            ("/talk/{session_id}/title", "POST", self.rename),
            ("/talk/{session_id}/delete", "POST", self.delete),
        ]

    async def new(self, request: Request) -> Response:
        """Show an empty conversation."""
        return await self._page(request, None, (), older=0)

    async def show(self, request: Request) -> Response:
        """Show the newest exchanges of a conversation, or those before a turn."""
        store, session = await self._desk.session(request, request.path_params["session_id"])
        before = number_of(request, "before")
        if message := number_of(request, "message"):
            before = await store.turns.number_at(session.id, message) + _EXCHANGES // 2
        turns = list(reversed(await store.turns.page(session.id, limit=_EXCHANGES, before=before)))
        exchanges = await _exchanges(store, session, turns, is_newest=before is None)
        older = turns[0].number if turns and turns[0].number > 1 else 0
        return await self._page(request, session, exchanges, older=older)

    async def say(self, request: Request) -> Response:
        """Answer a message with events as they come."""
        body = await read_json(request)
        asked = self._asked(request, _text(body, "text"), _text(body, "session"))
        asked = with_attachments(asked, _files(body, self._desk.settings.max_attachment_bytes))
        person = self._desk.speaker(request).person
        events = answer_events(self._handle, asked, self._questions, person)
        return EventStream(events, lambda sentence: encoded({"type": "error", "text": sentence}))

    async def say_without_script(self, request: Request) -> Response:
        """Answer a message of a browser without scripts, then show the conversation."""
        form = await self._desk.form(request)
        asked = self._asked(request, form.get("text", ""), form.get("session", ""))
        async with aclosing(self._handle(asked)) as events:
            reply = await collected(events)
        return see_other(f"/talk/{reply.session_id}#end")

    async def answer(self, request: Request) -> Response:
        """Take a person's answer to a question for consent."""
        body, person = await read_json(request), self._desk.speaker(request).person
        is_taken = self._questions.answer(person, _text(body, "id"), agrees=body.get("agrees") is True)
        return JsonResponse({"taken": is_taken})

    async def rename(self, request: Request) -> Response:
        """Give a conversation a title."""
        store, session = await self._desk.session(request, request.path_params["session_id"])
        title = (await self._desk.form(request)).get("title", "").strip()
        await store.sessions.rename(session.id, title[:_MOST_NAME])
        return see_other(f"/talk/{session.id}")

    async def delete(self, request: Request) -> Response:
        """Delete a conversation for good."""
        store, session = await self._desk.session(request, request.path_params["session_id"])
        await store.sessions.delete(session.id)
        return see_other("/talk")

    def _asked(self, request: Request, text: str, session: str) -> TurnRequest:
        if not text.strip():
            raise EmptyMessage
        if len(session) > _MOST_NAME:
            raise Refused(400, "session: this is no name of a conversation.", code="invalid_value")
        caller = self._desk.speaker(request).caller()
        asked = TurnRequest(text=text, session=session or uuid4().hex, caller=caller)
        return replace(asked, commands=True)

    async def _page(
        self, request: Request, session: Session | None, exchanges: tuple[Exchange, ...], *, older: int
    ) -> Response:
        return await self._desk.html(
            request,
            "talk",
            title=session.title if session and session.title else "Talk",
            session=session,
            exchanges=exchanges,
            older=older,
            sessions=await sessions_of(self._desk, request, limit=_SIDEBAR),
            can_say=self._desk.settings.can_write and (session is None or session.channel != IMPORTED),
            drawn=drawn,
        )


async def _exchanges(
    store: Store, session: Session, turns: list[TurnInfo], *, is_newest: bool
) -> tuple[Exchange, ...]:
    """Read the messages of turns. What lies before the first turn, as in an import, has none."""
    starts = [turn for turn in turns if turn.first]
    if not starts:
        return (Exchange(turn=None, messages=tuple(await store.messages.newest(session.id, 100))),)
    exchanges = list[Exchange]()
    if is_newest and starts[0].number == 1 and starts[0].first > 1:
        earlier = await store.messages.between(session.id, max(starts[0].first - 100, 1), starts[0].first - 1)
        exchanges.append(Exchange(turn=None, messages=tuple(earlier)))
    following = await store.turns.find_info(session.id, starts[-1].number + 1)
    end = following.first - 1 if following and following.first else starts[-1].first + 1_000
    messages = await store.messages.between(session.id, starts[0].first, end)
    bounds = [*(turn.first - starts[0].first for turn in starts), len(messages)]
    for at, turn in enumerate(starts):
        exchanges.append(Exchange(turn=turn, messages=tuple(messages[bounds[at] : bounds[at + 1]])))
    return tuple(exchanges)


def _text(body: dict[str, Any], name: str) -> str:
    value = body.get(name, "")
    if not isinstance(value, str):
        raise Refused(400, f"{name}: this must be a text.", code="invalid_value", param=name)
    return sendable(value)[0]


def _files(body: dict[str, Any], max_bytes: int) -> list[Attachment]:
    """Return the files that came with a message, each with its name and its bytes as base64."""
    rows = body.get("files", [])
    if (
        not isinstance(rows, list)
        or len(rows) > _MOST_FILES
        or not all(isinstance(one, dict) for one in rows)
    ):
        raise Refused(400, f"A message has at most {_MOST_FILES} files.", code="invalid_value", param="files")
    try:
        data = [(_text(one, "name"), b64decode(_text(one, "data"), validate=True)) for one in rows]
    except NoBase64:
        raise Refused(400, "A file must come as base64.", code="invalid_value", param="files") from None
    return [
        attachment_of(name[-_MOST_NAME:] or "file", content, max_bytes=max_bytes) for name, content in data
    ]
