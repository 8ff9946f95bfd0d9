"""The search over HTTP: what one person has in memory, with filters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import Query, Request
from starlette.responses import Response

from weft.channels.http_blocks import Sender
from weft.channels.problems import JsonResponse
from weft.channels.speaker import speaker_of
from weft.gateway.assistant import Assistant
from weft.recall.search_filter import read_kinds
from weft.recall.searcher import MOST_AROUND, MOST_HITS
from weft.store.base import Scope
from weft.types.codec import dump_json, to_dict
from weft.types.search import SearchQuery

Words = Annotated[str, Query(min_length=1, max_length=2000)]
Filter = Annotated[str, Query(max_length=200)]
Kinds = Annotated[str, Query(alias="in", max_length=200)]
Limit = Annotated[int, Query(ge=1, le=1000)]
Around = Annotated[int, Query(ge=0, le=MOST_AROUND)]


class SearchRoutes:
    """The route of the search. A person finds what is theirs and what is shared with them."""

    def __init__(self, assistant: Assistant) -> None:
        self._assistant = assistant

    def all(self) -> list[tuple[str, str, Callable[..., Any]]]:
        return [("/api/search", "GET", self.search)]

    async def search(  # noqa: PLR0913 - the parameters of the address
        self,
        request: Request,
        q: Words,
        sender: Sender = "",
        limit: Limit = 10,
        since: Filter = "",
        until: Filter = "",
        who: Filter = "",
        kinds: Kinds = "",
        around: Around = 0,
    ) -> Response:
        """Search the messages, blocks, notes and facts of a person, best hit first, with the reasons.

        Days are in UTC.
        """
        store, sources = await self._assistant.store.find(), read_kinds(kinds, who=who)
        caller = await self._assistant.engine.identify(speaker_of(request).caller(sender))
        if store is None:
            return JsonResponse({"results": []})
        scope = Scope(owner=caller.agent_id)
        only = await store.searcher.read_filter(
            scope, since=since, until=until, who=who, now=datetime.now(UTC)
        )
        query = SearchQuery(text=q, sources=sources, limit=min(limit, MOST_HITS), around=around)
        hits = await store.search(query, replace(scope, only=only))
        return JsonResponse(dump_json({"results": to_dict(hits)}))
