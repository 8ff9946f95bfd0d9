"""The page of the search: hits with their reasons, filters, and the conversation around each."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from weft.channels.pages.desk import Desk, Work
from weft.recall.explain import explained, query_pattern
from weft.recall.search_filter import KINDS, read_kinds
from weft.store.base import Scope
from weft.types.person import person_of
from weft.types.search import MemorySearchResult, SearchQuery
from weft.web.marked import marked

_HITS, _AROUND = 30, 2


class SearchPages:
    """A person finds what is theirs and what is shared with them."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def all(self) -> list[tuple[str, str, Work]]:
        return [("/search", "GET", self.search)]

    async def search(self, request: Request) -> Response:
        """Search all that was said and is remembered."""
        values = {
            name: request.query_params.get(name, "").strip()[:500] for name in ("q", "since", "until", "who")
        }
        places = ",".join(request.query_params.getlist("in"))[:500]
        chosen = read_kinds(places)
        hits = await self._find(request, values, places) if values["q"] else []
        pattern = query_pattern(values["q"]) if values["q"] else None
        return await self._desk.html(
            request,
            "search",
            title="Search",
            values=values,
            kinds=KINDS,
            chosen=[name for name in KINDS if KINDS[name] in chosen],
            hits=[(hit, explained(hit)) for hit in hits],
            marked=lambda text: marked(text, pattern),
            person_of=person_of,
            block_address=partial(_block_address, (await self._desk.caller(request)).agent_id),
        )

    async def _find(self, request: Request, values: dict[str, str], places: str) -> list[MemorySearchResult]:
        store, caller = await self._desk.store(), await self._desk.caller(request)
        if store is None:
            return []
        scope = Scope(owner=caller.agent_id)
        sources = read_kinds(places, who=values["who"])
        only = await store.searcher.read_filter(
            scope,
            since=values["since"],
            until=values["until"],
            who=values["who"],
            now=datetime.now(UTC),
        )
        query = SearchQuery(text=values["q"], sources=sources, limit=_HITS, around=_AROUND)
        return await store.search(query, replace(scope, only=only))


def _block_address(agent_id: str, hit: MemorySearchResult) -> str:
    """Return the page of a block, of one's own or of somebody who shares it."""
    owner = {"owner": hit.owner} if hit.owner and hit.owner != agent_id else {}
    return f"/memory/block?{urlencode({'label': hit.label, **owner})}"
