"""The page of a turn: what the model saw, why, what it cost, and what changed."""

from __future__ import annotations

import json
from itertools import islice

from starlette.requests import Request
from starlette.responses import Response

from weft.channels.pages.desk import Desk, Work
from weft.channels.problems import NotFound
from weft.channels.turn_views import diff_lines, reason_line, replay_line
from weft.errors import UnknownName
from weft.memory.base import Store
from weft.turn.inspect import TurnView, compare, replays, view, view_before, why
from weft.turn.item_text import item_texts
from weft.types.session import Session
from weft.web.context_bar import context_bar, used_bar
from weft.wire.items import join

_MOST_LINES = 2_000
"""The lines of a difference that a page shows."""


class TurnPages:
    """The pages of one turn. A person sees their own, the owner all."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def all(self) -> list[tuple[str, str, Work]]:
        return [
            ("/turns/{turn_id}", "GET", self.show),
            ("/turns/{turn_id}/items/{at}", "GET", self.item),
            ("/turns/{turn_id}/request", "GET", self.request),
            ("/turns/{turn_id}/diff", "GET", self.diff),
            ("/turns/{turn_id}/why", "GET", self.why),
        ]

    async def show(self, request: Request) -> Response:
        """Show all of a turn but the texts, which are read when somebody opens them."""
        store, session, info = await self._desk.turn(request, request.path_params["turn_id"])
        turn = await view(store, info)
        before = await store.turns.find_info(info.session_id, info.number - 1)
        after = await store.turns.find_info(info.session_id, info.number + 1)
        receipt = turn.receipt
        return await self._desk.html(
            request,
            "turn",
            title=f"Turn {info.number}",
            turn=turn,
            info=info,
            session=session,
            receipt=receipt,
            before=before,
            after=after,
            bar=context_bar(receipt, turn.predicted_cached) if receipt else "",
            used=used_bar(receipt, turn.predicted_cached) if receipt else "",
            replays=[(one, replay_line(one)) for one in replays(turn)] if turn.requests else [],
        )

    async def item(self, request: Request) -> Response:
        """Show the exact text of one item, as a part of the page or as a page of its own."""
        store, session, info = await self._desk.turn(request, request.path_params["turn_id"])
        turn, number = await view(store, info), request.path_params["at"]
        items = turn.receipt.items if turn.receipt else ()
        at = int(number) if number.isascii() and number.isdigit() and len(number) < 9 else len(items)
        if at >= len(items):
            raise NotFound("This turn has no such item.", code="item_not_found")
        texts = await item_texts(store, turn, items[at])
        part = "item_texts" if request.query_params.get("part") else "item"
        return await self._desk.html(
            request,
            part,
            title=items[at].title,
            info=info,
            session=session,
            item=items[at],
            at=at,
            texts=texts,
        )

    async def request(self, request: Request) -> Response:
        """Show a request as it was sent."""
        _, session, turn = await self._view(request)
        rounds = [(one, json.dumps(join(one.request), ensure_ascii=False, indent=2)) for one in turn.requests]
        if not rounds:
            _ = turn.first
        return await self._desk.html(
            request, "request", title="As it was sent", info=turn.info, session=session, rounds=rounds
        )

    async def diff(self, request: Request) -> Response:
        """Show what differs from another turn, or from the one before."""
        store, session, turn = await self._view(request)
        other = request.query_params.get("other", "")
        if other.isascii() and other.isdigit():
            found = await store.turns.find_info(session.id, int(other[:9]))
            if found is None:
                raise NotFound(f"There is no turn {other} in this conversation.", code="turn_not_found")
            before: TurnView | None = await view(store, found)
        else:
            before = await view_before(store, turn.info)
        if before is None:
            raise UnknownName("This is the first turn of its conversation: there is none before it.")
        difference = compare(before, turn)
        lines = list(islice(diff_lines(before.info, turn.info, difference), _MOST_LINES))
        return await self._desk.html(
            request,
            "turn_diff",
            title="What changed",
            info=turn.info,
            session=session,
            before=before.info,
            difference=difference,
            lines=lines[lines.index("") + 1 :] if "" in lines else [],
        )

    async def why(self, request: Request) -> Response:
        """Say of a text whether the model saw it."""
        store, session, turn = await self._view(request)
        text = request.query_params.get("text", "").strip()[:2_000]
        reasons = await why(store, turn, text) if text else []
        return await self._desk.html(
            request,
            "why",
            title="Did it see ...?",
            info=turn.info,
            session=session,
            text=text,
            reasons=[(one, reason_line(one)) for one in reasons],
        )

    async def _view(self, request: Request) -> tuple[Store, Session, TurnView]:
        store, session, info = await self._desk.turn(request, request.path_params["turn_id"])
        return store, session, await view(store, info)
