"""The page of people: who writes to the assistant, which senders are one human, and what each sees."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from weft.channels.pages.desk import Desk, Work
from weft.channels.pages.places import see_other
from weft.channels.speaker import CHANNEL
from weft.errors import PermissionDenied
from weft.memory.base import Store
from weft.types.person import OWNER_NAME, agent_of

_OWNER_ONLY = "Only the owner sees who else writes to the assistant."
_MOST = 200


class PeoplePages:
    """For the owner alone."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def all(self) -> list[tuple[str, str, Work]]:
        return [
            ("/people", "GET", self.list),
            ("/people/link", "POST", self.link),
            ("/people/unlink", "POST", self.unlink),
            ("/people/rename", "POST", self.rename),
            ("/people/revoke", "POST", self.revoke),
        ]

    async def list(self, request: Request) -> Response:
        """List everybody who is known, what each has, who was let in, and who was refused."""
        store = await self._store(request)
        people = (await store.people.list())[:_MOST]
        rows = [
            (
                person,
                len(await store.facts.list(person.name)),
                (await store.memory.page_blocks(agent_of(person.name), limit=0))[1],
            )
            for person in people
        ]
        tokens = [
            (one, await store.people.find(f"{CHANNEL}:{one.sender}"))
            for one in await store.auth.list_tokens()
        ]
        return await self._desk.html(
            request,
            "people",
            title="People",
            rows=rows,
            tokens=tokens,
            paired=await store.auth.list_paired(),
            denied=await store.auth.list_denied(limit=20),
            owner=OWNER_NAME,
        )

    async def link(self, request: Request) -> Response:
        """Make a sender one of a person's own."""
        store, form = await self._store(request), await self._desk.form(request)
        await store.people.link(form.get("sender", "").strip(), form.get("person", "").strip())
        return see_other("/people")

    async def unlink(self, request: Request) -> Response:
        """Make a sender a person of their own again."""
        store, form = await self._store(request), await self._desk.form(request)
        await store.people.unlink(form.get("sender", ""))
        return see_other("/people")

    async def rename(self, request: Request) -> Response:
        """Give a person another name."""
        store, form = await self._store(request), await self._desk.form(request)
        await store.people.rename(form.get("person", ""), form.get("name", "").strip())
        return see_other("/people")

    async def revoke(self, request: Request) -> Response:
        """Revoke a token, which ends the browsers that signed in with it, too."""
        store, form = await self._store(request), await self._desk.form(request)
        await store.auth.revoke_token(form.get("name", ""))
        return see_other("/people")

    async def _store(self, request: Request) -> Store:
        if not self._desk.speaker(request).is_owner:
            raise PermissionDenied(_OWNER_ONLY)
        return await self._desk.open_store()
