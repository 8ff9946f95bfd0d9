"""Memory blocks over HTTP: reading, making, editing by the verbs of their schemas, changing what they are."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Literal

from fastapi import Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from weft.channels.http_bodies import Name, Schema
from weft.channels.problems import JsonResponse, NotFound
from weft.channels.speaker import speaker_of
from weft.gateway.assistant import Assistant
from weft.memory.edits import BlockEdit, Verb
from weft.memory.store import MemoryStore
from weft.types.codec import dump_json, to_dict
from weft.types.memory import BlockType, Permission
from weft.types.request import Caller
from weft.types.schema import BlockSchema, make_schema, schema_from_dict

Sender = Annotated[str, Query(max_length=200)]
Kind = Literal["text", "map", "list", "log", "composite"]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class NewBlock(_Body):
    """A block to make. `schema` is a kind with the names of its `fields`, or a whole schema."""

    label: Name = Field(min_length=1)
    kind: Kind = "text"
    fields: list[Name] = Field(default_factory=list, max_length=100)
    definition: Schema | None = Field(default=None, alias="schema")
    description: str = Field(default="", max_length=2000)
    type: BlockType = BlockType.WORKING
    permission: Permission = Permission.READ_WRITE
    limit: int = Field(default=5000, ge=1, le=10_000_000)
    pinned: bool = True

    def chosen_schema(self) -> BlockSchema:
        return schema_from_dict(self.definition) if self.definition else make_schema(self.kind, self.fields)


class BlockChanges(_Body):
    """What a block is to be. What is left out stays."""

    label: Name | None = Field(default=None, min_length=1)
    definition: Schema | None = Field(default=None, alias="schema")
    description: str | None = Field(default=None, max_length=2000)
    type: BlockType | None = None
    permission: Permission | None = None
    limit: int | None = Field(default=None, ge=1, le=10_000_000)
    pinned: bool | None = None


class EditBody(_Body):
    """One edit of a block by a verb of its schema; `index` counts the items of a list from 1."""

    verb: Verb
    value: Any = None
    field: Name = ""
    index: int | None = Field(default=None, ge=1)
    section: Name = ""


class BlockText(_Body):
    """A whole text for a text block. With `base`, the version that was read, later changes of others stay."""

    text: str
    base: str | None = Field(default=None, max_length=200)


class BlockRoutes:
    """The routes, one method each. A person may do everything with a block of their own.

    A block that somebody shares with them keeps the permission of the share.
    """

    def __init__(self, assistant: Assistant) -> None:
        self._assistant = assistant

    def all(self) -> list[tuple[str, str, Callable[..., Any]]]:
        one = "/api/blocks/{label}"
        return [
            ("/api/blocks", "GET", self.blocks),
            ("/api/blocks", "POST", self.create),
            (one, "GET", self.block),
            (one, "PUT", self.write),
            (one, "PATCH", self.change),
            (one, "DELETE", self.delete),
            (f"{one}/edits", "POST", self.edit),
        ]

    async def blocks(self, request: Request, sender: Sender = "") -> Response:
        """List memory blocks as the model sees them."""
        store = await self._assistant.store.find()
        caller = await self._caller(request, sender)
        rows = await store.memory.rendered_blocks(caller.agent_id) if store is not None else ()
        return JsonResponse(dump_json({"blocks": to_dict(rows)}))

    async def create(self, request: Request, body: NewBlock, sender: Sender = "") -> Response:
        """Make a block of any kind."""
        caller, memory = await self._memory(request, sender)
        await memory.create_block(
            caller.agent_id,
            body.label,
            description=body.description,
            block_type=body.type,
            schema=body.chosen_schema(),
            permission=body.permission,
            char_limit=body.limit,
            pinned=body.pinned,
            is_system=True,
        )
        return await self._shown(caller, memory, body.label, 201)

    async def block(self, request: Request, label: str, sender: Sender = "") -> Response:
        """Show one block with its version."""
        caller, memory = await self._memory(request, sender)
        return await self._shown(caller, memory, label)

    async def write(self, request: Request, label: str, body: BlockText, sender: Sender = "") -> Response:
        """Write the whole text of a text block."""
        caller, memory = await self._memory(request, sender)
        await memory.update_block_text(
            caller.agent_id, label, body.text, base=body.base, is_system=await _is_own(caller, memory, label)
        )
        return await self._shown(caller, memory, label)

    async def edit(self, request: Request, label: str, body: EditBody, sender: Sender = "") -> Response:
        """Edit a block: append, push, insert, remove, set, increment or log."""
        caller, memory = await self._memory(request, sender)
        edit = BlockEdit(**body.model_dump())
        await memory.edit_block(caller.agent_id, label, edit, is_system=await _is_own(caller, memory, label))
        return await self._shown(caller, memory, label)

    async def change(self, request: Request, label: str, body: BlockChanges, sender: Sender = "") -> Response:
        """Change what a block is: label, schema, description, type, permission, limit, pinned."""
        caller, memory = await self._memory(request, sender)
        schema = schema_from_dict(body.definition) if body.definition is not None else None
        setters: tuple[tuple[Callable[..., Awaitable[None]], Any], ...] = (
            (memory.update_block_schema, schema),
            (memory.set_block_description, body.description),
            (memory.set_block_type, body.type),
            (memory.set_block_limit, body.limit),
            (memory.set_block_pinned, body.pinned),
            (memory.set_block_permission, body.permission),
            (memory.rename_block, body.label),
        )
        is_own = await _is_own(caller, memory, label)
        for setter, value in setters:
            if value is not None:
                await setter(caller.agent_id, label, value, is_system=is_own)
        return await self._shown(caller, memory, body.label or label)

    async def delete(self, request: Request, label: str, sender: Sender = "") -> Response:
        """Delete a block with its history."""
        caller, memory = await self._memory(request, sender)
        await memory.delete_block(caller.agent_id, label, is_system=await _is_own(caller, memory, label))
        return JsonResponse({"deleted": label})

    async def _caller(self, request: Request, sender: str) -> Caller:
        return await self._assistant.engine.identify(speaker_of(request).caller(sender))

    async def _memory(self, request: Request, sender: str) -> tuple[Caller, MemoryStore]:
        caller = await self._caller(request, sender)
        memory = (await self._assistant.store.get()).memory
        return caller, memory.by(caller.person, "HTTP")

    async def _shown(self, caller: Caller, memory: MemoryStore, label: str, status: int = 200) -> Response:
        for block in await memory.rendered_blocks(caller.agent_id):
            if block.label == label:
                return JsonResponse(dump_json(to_dict(block)), status)
        raise NotFound(f"There is no block {label!r}: GET /api/blocks lists them.", code="block_not_found")


async def _is_own(caller: Caller, memory: MemoryStore, label: str) -> bool:
    return await memory.get_block(caller.agent_id, label) is not None
