"""The pages of memory blocks: editors that know their schema, rights and sharing, history and undo."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from difflib import unified_diff
from typing import Any, cast
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from weft.channels.pages.desk import Desk, Work, number_of
from weft.channels.pages.places import see_other
from weft.channels.pages.talking import encoded
from weft.channels.problems import NotFound, Refused
from weft.channels.sse import EventStream
from weft.errors import InvalidEdit, PermissionDenied, did_you_mean
from weft.gateway.waiting import pause
from weft.memory.document import Document
from weft.memory.edits import BlockEdit, Verb
from weft.memory.store import MemoryStore
from weft.types.memory import BlockInfo, BlockType, Permission
from weft.types.person import ASSISTANT, agent_of, person_of
from weft.types.schema import make_schema

_PAGE = 100
_LOOK_SECONDS = 1.0
_MOST_LIVE = 40
"""The windows of one person that are told of changes at once. Each looks at its block every second."""
_TOO_MANY = (
    "Too many of your windows show blocks: close some. This one shows changes when it is loaded again."
)
_OWNER_SHARES = "Only the owner may share a block, as it then stands in what another person's model reads."
KINDS = ("text", "map", "list", "log", "composite")


@dataclass(frozen=True, slots=True, kw_only=True)
class Whose:
    """Whose memory a page shows, and who looks."""

    person: str
    agent_id: str
    memory: MemoryStore

    def address(self, label: str, **more: str) -> str:
        """Return the address of the page of a block."""
        return self.place("/memory/block", label=label, **more)

    def place(self, path: str, **more: str) -> str:
        """Return the address of a page about this person."""
        values = more if self.agent_id == ASSISTANT else {**more, "person": self.person}
        return f"{path}?{urlencode(values)}" if values else path


class BlockPages:
    """The pages of blocks. A person sees and edits their own; the owner may open anybody's."""

    def __init__(self, desk: Desk) -> None:
        self._desk, self._live = desk, Counter[str]()

    def all(self) -> list[tuple[str, str, Work]]:
        one = "/memory/block"
        return [
            ("/memory", "GET", self.list),
            ("/memory", "POST", self.create),
            (one, "GET", self.show),
            (f"{one}/live", "GET", self.live),
            (f"{one}/text", "POST", self.write),
            (f"{one}/edit", "POST", self.edit),
            (f"{one}/settings", "POST", self.change),
            (f"{one}/share", "POST", self.share),
            (f"{one}/undo", "POST", self.undo),
            (f"{one}/redo", "POST", self.redo),
            (f"{one}/delete", "POST", self.delete),
        ]

    async def list(self, request: Request) -> Response:
        """List the blocks of a person, and those that others share with them."""
        whose = await self.whose(request)
        page = number_of(request, "page", default=1) or 1
        start = (page - 1) * _PAGE
        blocks, number = await whose.memory.page_blocks(whose.agent_id, limit=_PAGE, offset=start)
        return await self._desk.html(
            request,
            "memory",
            title="Memory",
            whose=whose,
            blocks=blocks,
            number=number,
            page=page,
            has_more=number > start + _PAGE,
            shared=await whose.memory.list_shared_blocks(whose.agent_id),
            person_of=person_of,
            kinds=KINDS,
            types=[*BlockType],
        )

    async def create(self, request: Request) -> Response:
        """Make a block."""
        whose, form = await self.whose(request), await self._desk.form(request)
        label, fields = form.get("label", "").strip(), form.get("fields", "")
        kind, parts = form.get("kind", "text"), [part for part in fields.split(",") if part.strip()]
        if kind in ("map", "composite") and not parts:
            raise InvalidEdit(f"A {kind} needs its fields, or nothing can be written into it: name them.")
        schema = make_schema(kind, parts)
        await whose.memory.create_block(
            whose.agent_id,
            label,
            description=form.get("description", ""),
            block_type=_choice(BlockType, form.get("type", "")),
            schema=schema,
            pinned=form.get("pinned") == "on",
            is_system=True,
        )
        return see_other(whose.address(label))

    async def show(self, request: Request) -> Response:
        """Show a block with its editor, and its history behind it."""
        whose = await self.whose(request)
        label, owner = request.query_params.get("label", ""), request.query_params.get("owner", "")
        if owner:
            return await self._show_shared(request, whose, owner, label)
        document, info = await self._block(whose, label)
        history = await whose.memory.block_history(whose.agent_id, label)
        version = number_of(request, "version")
        before = next((one.version for one in reversed(history) if version and one.version < version), None)
        then = await self._text_at(whose, label, version)
        shares = [one for one in await whose.memory.list_shares(whose.agent_id) if one.label == label]
        return await self._desk.html(
            request,
            "block",
            title=label,
            whose=whose,
            info=info,
            document=document,
            content=document.content(),
            rendered=document.render(),
            version=document.version,
            history=history,
            chosen=next((one for one in history if one.version == version), None),
            then=then,
            lines=_changed(await self._text_at(whose, label, before), then) if version else [],
            shares=shares,
            person_of=person_of,
            types=[*BlockType],
            permissions=[*Permission],
        )

    async def live(self, request: Request) -> Response:
        """Tell a page that shows a block when it was changed, by whomever."""
        whose, label = await self.whose(request), request.query_params.get("label", "")
        await self._block(whose, label)
        person = self._desk.speaker(request).person
        if self._live[person] >= _MOST_LIVE:
            raise Refused(429, _TOO_MANY, code="rate_limit_exceeded")
        return EventStream(self._changes(request, whose, label), lambda _: b"")

    async def _changes(self, request: Request, whose: Whose, label: str) -> AsyncGenerator[bytes]:
        """Yield the text of a block, and each new one, while whoever looks may see it."""
        person, version = self._desk.speaker(request).person, ""
        self._live[person] += 1
        try:
            while not self._desk.closing.is_set() and await self._desk.is_still_there(request):
                document = await whose.memory.get_block(whose.agent_id, label)
                if document is None:
                    yield encoded({"deleted": True})
                    return
                document.render()
                if document.version != version:
                    version = document.version
                    text = document.text() if document.schema.kind == "text" else None
                    yield encoded({"version": version, "text": text})
                await pause(self._desk.closing, _LOOK_SECONDS)
        finally:
            self._live[person] -= 1

    async def write(self, request: Request) -> Response:
        """Write the whole text of a block, as a change of the version that the page showed."""
        whose, form = await self.whose(request), await self._desk.form(request)
        label, text = form.get("label", ""), form.get("text", "").replace("\r\n", "\n")
        if section := form.get("section", ""):
            edit = BlockEdit(verb="set", value=text, section=section)
            await whose.memory.edit_block(whose.agent_id, label, edit, is_system=True)
        else:
            await whose.memory.update_block_text(
                whose.agent_id, label, text, base=form.get("base") or None, is_system=True
            )
        return see_other(whose.address(label))

    async def edit(self, request: Request) -> Response:
        """Edit a block by a verb of its schema."""
        whose, form = await self.whose(request), await self._desk.form(request)
        index, verb = form.get("index", ""), form.get("verb", "")
        edit = BlockEdit(
            verb=cast("Verb", verb),  # an unknown one is refused with those that the block has
            value=form.get("value"),
            field=form.get("field", ""),
            index=int(index) if index.isascii() and index.isdigit() and len(index) < 9 else None,
            section=form.get("section", ""),
            is_typed=True,
        )
        await whose.memory.edit_block(whose.agent_id, form.get("label", ""), edit, is_system=True)
        return see_other(whose.address(form.get("label", "")))

    async def change(self, request: Request) -> Response:
        """Change what a block is: its label, type, permission, limit, pin, description."""
        whose, form = await self.whose(request), await self._desk.form(request)
        label = form.get("label", "")
        _, info = await self._block(whose, label)
        memory, agent = whose.memory, whose.agent_id
        limit, new = form.get("limit", ""), form.get("new_label", "").strip() or label
        if limit.isascii() and limit.isdigit() and int(limit[:9]) != info.char_limit:
            await memory.set_block_limit(agent, label, int(limit[:9]), is_system=True)
        if (is_pinned := form.get("pinned") == "on") != info.pinned:
            await memory.set_block_pinned(agent, label, is_pinned, is_system=True)
        if (type_ := _choice(BlockType, form.get("type", ""))) != info.block_type:
            await memory.set_block_type(agent, label, type_, is_system=True)
        if form.get("description", "") != info.description:
            await memory.set_block_description(agent, label, form.get("description", ""), is_system=True)
        if (right := _choice(Permission, form.get("permission", ""))) != info.permission:
            await memory.set_block_permission(agent, label, right, is_system=True)
        if new != label:
            await memory.rename_block(agent, label, new, is_system=True)
        return see_other(whose.address(new))

    async def share(self, request: Request) -> Response:
        """Share a block with a person, or no longer."""
        whose, form = await self.whose(request), await self._desk.form(request)
        label, person = form.get("label", ""), form.get("with", "").strip()
        if not person:
            raise InvalidEdit("Say with whom: a person's name, as the page of people shows it.")
        if form.get("end"):
            await whose.memory.unshare_block(whose.agent_id, label, form["end"], is_system=True)
        elif not self._desk.speaker(request).is_owner:
            raise PermissionDenied(_OWNER_SHARES)  # it would stand in the other person's context
        else:
            await self._check_known(person)
            right = _choice(Permission, form.get("permission", ""))
            await whose.memory.share_block(whose.agent_id, label, agent_of(person), right, is_system=True)
        return see_other(whose.address(label))

    async def _check_known(self, person: str) -> None:
        """Check that a name is somebody's: who gets it later would see the block. A sender may yet write."""
        names = [one.name for one in await (await self._desk.open_store()).people.list()]
        if ":" not in person and person not in names:
            raise InvalidEdit(f"Nobody is called {person!r}: {did_you_mean(person, names)}")

    async def undo(self, request: Request) -> Response:
        """Take back the newest change."""
        whose, form = await self.whose(request), await self._desk.form(request)
        label = form.get("label", "")
        if not await whose.memory.undo_block(whose.agent_id, label, is_system=True):
            raise InvalidEdit(f"There is nothing to take back in the block {label!r}.")
        return see_other(whose.address(label))

    async def redo(self, request: Request) -> Response:
        """Bring back what was undone last."""
        whose, form = await self.whose(request), await self._desk.form(request)
        label = form.get("label", "")
        if not await whose.memory.redo_block(whose.agent_id, label, is_system=True):
            raise InvalidEdit(f"There is nothing to bring back in the block {label!r}.")
        return see_other(whose.address(label))

    async def delete(self, request: Request) -> Response:
        """Delete a block with its history."""
        whose, form = await self.whose(request), await self._desk.form(request)
        await whose.memory.delete_block(whose.agent_id, form.get("label", ""), is_system=True)
        return see_other(whose.place("/memory"))

    async def whose(self, request: Request) -> Whose:
        """Return whose memory a page shows: the speaker's own, or for the owner that of `person`."""
        caller, person = await self._desk.caller(request), request.query_params.get("person", "")
        if not person and request.method == "POST":
            person = (await self._desk.form(request)).get("person", "")
        memory = (await self._desk.open_store()).memory.by(caller.person, "page")
        if person and person != caller.person:
            if not self._desk.speaker(request).is_owner:
                raise NotFound("There is no such memory.", code="not_found")
            return Whose(person=person, agent_id=agent_of(person), memory=memory)
        return Whose(person=caller.person, agent_id=caller.agent_id, memory=memory)

    async def _block(self, whose: Whose, label: str) -> tuple[Document, BlockInfo]:
        document = await whose.memory.get_block(whose.agent_id, label)
        info = await whose.memory.find_block(whose.agent_id, label)
        if document is None or info is None:
            raise NotFound(f"There is no block {label!r}.", code="block_not_found")
        return document, info

    async def _text_at(self, whose: Whose, label: str, version: int | None) -> str:
        return "" if version is None else await whose.memory.block_at(whose.agent_id, label, version)

    async def _show_shared(self, request: Request, whose: Whose, owner: str, label: str) -> Response:
        document = await whose.memory.get_shared_block(whose.agent_id, owner, label)
        if document is None:
            raise NotFound(f"Nobody shares a block {label!r} with you.", code="block_not_found")
        return await self._desk.html(
            request,
            "shared_block",
            title=label,
            owner=person_of(owner) or owner,
            permission=document.permission,
            rendered=document.render(),
        )


def _choice(kind: Any, value: str) -> Any:
    """Return a member of an enumeration that a form names.

    Raises:
        InvalidEdit: there is none of that name.
    """
    try:
        return kind(value)
    except ValueError:
        names = ", ".join(kind)
        raise InvalidEdit(f"{value!r} is none of these: {names}.") from None


def _changed(before: str, after: str) -> list[str]:
    lines = unified_diff(before.split("\n"), after.split("\n"), "before", "after", n=3, lineterm="")
    return [line for at, line in enumerate(lines) if at > 1]
