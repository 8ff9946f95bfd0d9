"""The pages of facts, with the message that each came from, of standing instructions, and of the archive."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from weft.channels.pages.blocks import BlockPages, Whose
from weft.channels.pages.desk import Desk, Work
from weft.channels.pages.places import see_other
from weft.channels.problems import NotFound
from weft.errors import InvalidEdit
from weft.memory.base import Store

_NOTES = 100


class FactPages:
    """What is remembered beside blocks."""

    def __init__(self, desk: Desk, blocks: BlockPages) -> None:
        self._desk, self._whose = desk, blocks.whose

    def all(self) -> list[tuple[str, str, Work]]:
        return [
            ("/memory/facts", "GET", self.facts),
            ("/memory/facts", "POST", self.save_fact),
            ("/memory/facts/forget", "POST", self.forget),
            ("/memory/instructions", "POST", self.add_instruction),
            ("/memory/instructions/remove", "POST", self.remove_instruction),
            ("/memory/archive", "GET", self.archive),
            ("/memory/archive", "POST", self.keep),
            ("/memory/archive/delete", "POST", self.delete_note),
        ]

    async def facts(self, request: Request) -> Response:
        """List what is known about a person, what was before, and what the assistant always does."""
        whose, store = await self._whose(request), await self._desk.open_store()
        key = request.query_params.get("key", "")
        facts = await store.facts.list(whose.person)
        senders = await store.people.senders(whose.person)
        sources = await store.turns.find_at(senders, [fact.created_at for fact in facts if fact.created_at])
        return await self._desk.html(
            request,
            "facts",
            title="Facts",
            whose=whose,
            facts=[(fact, sources.get(fact.created_at) if fact.created_at else None) for fact in facts],
            key=key,
            history=await store.facts.history(whose.person, key) if key else [],
            instructions=await store.instructions.list(whose.person),
        )

    async def save_fact(self, request: Request) -> Response:
        """Set a fact."""
        whose, form, store = await self._of(request)
        key, value = form.get("key", "").strip(), form.get("value", "").strip()
        if not key or not value:
            raise InvalidEdit("A fact has a name and a value: fill in both.")
        await store.facts.set(whose.person, key, value)
        return see_other(whose.place("/memory/facts"))

    async def forget(self, request: Request) -> Response:
        """Forget a fact."""
        whose, form, store = await self._of(request)
        await store.facts.delete(whose.person, form.get("key", ""))
        return see_other(whose.place("/memory/facts"))

    async def add_instruction(self, request: Request) -> Response:
        """Add a standing instruction, which no fold loses."""
        whose, form, store = await self._of(request)
        if not form.get("text", "").strip():
            raise InvalidEdit("The instruction is empty: say what to do from now on.")
        await store.instructions.add(whose.person, form.get("text", ""), pinned=True)
        return see_other(whose.place("/memory/facts"))

    async def remove_instruction(self, request: Request) -> Response:
        """Remove a standing instruction."""
        whose, form, store = await self._of(request)
        await store.instructions.remove(whose.person, form.get("id", ""))
        return see_other(whose.place("/memory/facts"))

    async def archive(self, request: Request) -> Response:
        """List notes, the newest first, or those that match a search."""
        whose, query = await self._whose(request), request.query_params.get("q", "").strip()[:500]
        memory = whose.memory
        if query:
            notes = await memory.search_archival(whose.agent_id, query, _NOTES)
        else:
            notes = await memory.newest_archival(whose.agent_id, _NOTES)
        return await self._desk.html(
            request, "archive", title="Archive", whose=whose, notes=notes, query=query, most=_NOTES
        )

    async def keep(self, request: Request) -> Response:
        """Keep a note."""
        whose, form, _ = await self._of(request)
        if not form.get("text", "").strip():
            raise InvalidEdit("The note is empty: say what to keep.")
        await whose.memory.insert_archival(whose.agent_id, form.get("text", ""))
        return see_other(whose.place("/memory/archive"))

    async def delete_note(self, request: Request) -> Response:
        """Take a note of this person out of the archive."""
        whose, form, _ = await self._of(request)
        if not await whose.memory.delete_archival(form.get("id", ""), agent_id=whose.agent_id):
            raise NotFound("There is no such note.", code="note_not_found")
        return see_other(whose.place("/memory/archive"))

    async def _of(self, request: Request) -> tuple[Whose, dict[str, str], Store]:
        return await self._whose(request), await self._desk.form(request), await self._desk.open_store()
