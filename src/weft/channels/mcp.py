"""Weft as an MCP server: other programs ask the assistant, use an agent's memory, and see contexts built.

A server speaks for one person, who is named at its start. A client acts as that person's agent, never as the
system: the permissions of blocks hold, and a refusal is an answer with our sentence in it. `read_block` gives
a version and `write_block` takes it as its base: a text that is written back later keeps what others wrote in
between, even if the server was restarted meanwhile.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, Literal, ParamSpec, TypeVar
from uuid import uuid4

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError as ToolRefusal
from mcp.types import ToolAnnotations
from pydantic import ValidationError

from weft.errors import StoreError, WeftError
from weft.gateway.assistant import Assistant
from weft.memory.base import Store
from weft.memory.edits import BlockEdit
from weft.providers.base import collected
from weft.types.person import default_person
from weft.types.request import Caller, TurnRequest
from weft.types.schema import make_schema
from weft.types.search import SearchOptions
from weft.types.version import VERSION

_INSTRUCTIONS = (
    "The lasting memory of an agent: blocks of text that it keeps up to date, notes in an archive, facts "
    "about people. Search before you ask a person again, and write down what should last."
)
_MOST_HITS = 50
_PREVIEW = "mcp-preview"
"""The name of a session that is never created: a preview with one reads memory."""

P = ParamSpec("P")
T = TypeVar("T")


# Without slots: the SDK reads the fields from the class to tell clients the shape of an answer.
@dataclass(frozen=True, kw_only=True)
class Hit:
    source: str
    id: str
    text: str
    score: float


@dataclass(frozen=True, kw_only=True)
class Hits:
    hits: list[Hit]


@dataclass(frozen=True, kw_only=True)
class Block:
    label: str
    description: str
    type: str
    permission: str
    pinned: bool
    shared_from: str
    characters: int


@dataclass(frozen=True, kw_only=True)
class Blocks:
    blocks: list[Block]


@dataclass(frozen=True, kw_only=True)
class BlockText:
    text: str
    version: str


@dataclass(frozen=True, kw_only=True)
class Facts:
    facts: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class Answer:
    reply: str
    session: str
    turn: str


@dataclass(frozen=True, kw_only=True)
class Built:
    """A context and the short form of its receipt."""

    text: str
    recipe: str
    tokens: int
    limit: int
    by_layer: dict[str, int]
    left_out: list[str]
    warnings: list[str]


class _Tools:
    """The tools. A model reads the docstring of each."""

    def __init__(self, assistant: Assistant, store: Store, caller: Caller) -> None:
        self._assistant, self._caller = assistant, caller
        person = caller.person or default_person(caller.sender)
        self._memory, self._facts = store.memory.by(person, "MCP"), store.facts
        self._agent_id, self._person = caller.agent_id, caller.sender

    async def ask(self, text: str, session: str = "") -> Answer:
        """Ask the assistant; go on in a session by its id or a name of your own, or begin a new one."""
        request = TurnRequest(text=text, caller=self._caller, session=session or uuid4().hex, commands=True)
        reply = await collected(self._assistant.handle(request))
        return Answer(reply=reply.text_with_notice, session=reply.session_id, turn=reply.turn_id)

    async def search(self, query: str, limit: int = 10) -> Hits:
        """Search messages, memory blocks and notes; the best hit comes first."""
        options = SearchOptions(limit=_within(limit))
        results = await self._memory.search(self._agent_id, query, options)
        return Hits(
            hits=[
                Hit(source=hit.source, id=hit.id, text=hit.content, score=round(hit.score, 4))
                for hit in results
            ]
        )

    async def list_blocks(self) -> Blocks:
        """List the memory blocks: your own, and those that other agents share with you."""
        blocks = await self._memory.rendered_blocks(self._agent_id)
        return Blocks(
            blocks=[
                Block(
                    label=block.label,
                    description=block.description,
                    type=block.block_type,
                    permission=block.permission,
                    pinned=block.pinned,
                    shared_from=block.shared_from,
                    characters=len(block.content),
                )
                for block in blocks
            ]
        )

    async def read_block(self, label: str, shared_from: str = "") -> BlockText:
        """Read a memory block and its version; `shared_from` names the agent that a shared one belongs to."""
        if shared_from and shared_from != self._agent_id:
            document = await self._memory.get_shared_block(self._agent_id, shared_from, label)
        else:
            document = await self._memory.find_usable_block(self._agent_id, label)
        if document is None:
            raise StoreError(f"There is no block {label!r} here: `list_blocks` lists them.")
        return BlockText(text=document.render(), version=document.version)

    async def append_block(self, label: str, text: str) -> str:
        """Add text to the end of a memory block, on a line of its own; a new label makes a new block."""
        await self._make_if_missing(label)
        await self._memory.append_to_block(self._agent_id, label, text, own_line=True)
        return f"The text was added to {label!r}."

    async def replace_in_block(self, label: str, old: str, new: str) -> str:
        """Replace the first occurrence of a text in a memory block."""
        if not await self._memory.replace_in_block(self._agent_id, label, old, new):
            raise StoreError(f"{old!r} is not in the block {label!r}: `read_block` shows what is.")
        return f"The text was replaced in {label!r}."

    async def write_block(self, label: str, text: str, base: str = "") -> str:
        """Make this the whole text of a memory block; a new label makes a new block.

        `base` is the version that `read_block` gave: what others wrote since then stays. Without it the text
        replaces all that is there.
        """
        is_new = await self._make_if_missing(label)
        await self._memory.update_block_text(self._agent_id, label, text, base=base or None)
        return f"The block {label!r} was {'made' if is_new else 'changed'}."

    async def _make_if_missing(self, label: str) -> bool:
        """Make a block, pinned so that a model sees it, unless one can be used. Returns whether it is new."""
        is_new = await self._memory.find_usable_block(self._agent_id, label) is None
        if is_new:
            await self._memory.create_block(self._agent_id, label, pinned=True)
        return is_new

    async def create_block(
        self,
        label: str,
        kind: Literal["text", "map", "list", "log", "composite"] = "text",
        fields: list[str] | None = None,
        description: str = "",
    ) -> str:
        """Make a memory block of any kind.

        `fields` names a map's fields, the fields of a list's items or of a log's entries, each as NAME or
        NAME:TYPE (text, number, boolean, list, timestamp, counter); for a composite its sections, NAME:KIND.
        """
        schema = make_schema(kind, fields or ())
        await self._memory.create_block(
            self._agent_id, label, schema=schema, description=description, pinned=True
        )
        return f"The block {label!r} was made."

    async def edit_block(
        self,
        label: str,
        verb: Literal["append", "push", "insert", "remove", "set", "increment", "log"],
        value: Any = None,
        field: str = "",
        index: int | None = None,
        section: str = "",
    ) -> BlockText:
        """Edit a memory block by a verb of its kind, and get what it reads then.

        A text can append and set; a list push, insert, remove and set (by `index`, from 1); a map set, push
        (to a list) and increment (a counter) by `field`; a log log. `section` names a part of a composite.
        """
        edit = BlockEdit(verb=verb, value=value, field=field, index=index, section=section)
        await self._memory.edit_block(self._agent_id, label, edit)
        document = await self._memory.find_usable_block(self._agent_id, label)
        if document is None:
            raise StoreError(f"There is no block {label!r} any more.")
        return BlockText(text=document.render(), version=document.version)

    async def remember_fact(self, key: str, value: str) -> str:
        """Keep a fact about your user under a short key."""
        await self._facts.set(self._person, key, value, by_model=True)
        return f"{key!r} was noted."

    async def list_facts(self) -> Facts:
        """List what is known about your user."""
        known = await self._facts.list(self._person)
        return Facts(facts={fact.key: fact.value for fact in known})

    async def insert_note(self, text: str) -> str:
        """Keep a note in the archive, and get its id."""
        return await self._memory.insert_archival(self._agent_id, text)

    async def search_notes(self, query: str, limit: int = 10) -> Hits:
        """Search the notes in the archive; the best hit comes first."""
        notes = await self._memory.search_archival(self._agent_id, query, _within(limit))
        return Hits(
            hits=[
                Hit(source="archival", id=note.id, text=note.content, score=round(note.score, 4))
                for note in notes
            ]
        )

    async def build_context(self, message: str) -> Built:
        """Build what a model would be shown for a message, with what it costs and what was left out."""
        request = TurnRequest(text=message, caller=self._caller, session=_PREVIEW)
        context = await self._assistant.preview(request)
        receipt = context.receipt
        return Built(
            text=context.to_prompt_string(),
            recipe=receipt.recipe if receipt else "",
            tokens=receipt.total_tokens if receipt else 0,
            limit=receipt.limit if receipt else 0,
            by_layer=dict(receipt.by_layer) if receipt else {},
            left_out=[
                f"{item.layer}: {item.title or item.source} ({item.reason})"
                for item in (receipt.items if receipt else ())
                if not item.kept
            ],
            warnings=list(receipt.warnings) if receipt else [],
        )


class _Server(MCPServer[None]):
    """A server that tells of wrong arguments in one sentence."""

    async def call_tool(self, name: str, arguments: dict[str, Any], context: Any = None) -> Any:
        try:
            return await super().call_tool(name, arguments, context)
        except ToolRefusal as error:
            if not isinstance(error.__cause__, ValidationError):
                raise
            wrong = [_wrong(each["loc"], each["msg"]) for each in error.__cause__.errors()]
            raise ToolRefusal(f"{name} was called wrongly: {'; '.join(wrong)}.") from None


def _wrong(place: tuple[int | str, ...], message: str) -> str:
    name = ".".join(map(str, place))
    return f"{name!r} is missing" if message == "Field required" else f"{name!r}: {message.lower()}"


def make_server(assistant: Assistant, store: Store, caller: Caller) -> MCPServer[None]:
    """Make a server for the memory of the caller's agent. Facts are about the caller.

    It can be run once, over one transport: make a new one for each.
    """
    tools = _Tools(assistant, store, caller)
    server = _Server(
        "weft",
        title="Weft",
        instructions=_INSTRUCTIONS,
        version=VERSION,
        log_level="WARNING",
    )
    # The memory is a closed world, and keeps the history of what is changed in it.
    reads = ToolAnnotations(read_only_hint=True, open_world_hint=False)
    writes = ToolAnnotations(destructive_hint=False, open_world_hint=False)
    acts = ToolAnnotations(destructive_hint=False, open_world_hint=True)
    server.add_tool(_with_refusals(tools.ask), annotations=acts)
    server.add_tool(_with_refusals(tools.search), annotations=reads)
    server.add_tool(_with_refusals(tools.list_blocks), annotations=reads)
    server.add_tool(_with_refusals(tools.read_block), annotations=reads)
    server.add_tool(_with_refusals(tools.append_block), annotations=writes)
    server.add_tool(_with_refusals(tools.replace_in_block), annotations=writes)
    server.add_tool(_with_refusals(tools.write_block), annotations=writes)
    server.add_tool(_with_refusals(tools.create_block), annotations=writes)
    server.add_tool(_with_refusals(tools.edit_block), annotations=writes)
    server.add_tool(_with_refusals(tools.remember_fact), annotations=writes)
    server.add_tool(_with_refusals(tools.list_facts), annotations=reads)
    server.add_tool(_with_refusals(tools.insert_note), annotations=writes)
    server.add_tool(_with_refusals(tools.search_notes), annotations=reads)
    server.add_tool(_with_refusals(tools.build_context), annotations=reads)
    return server


def _with_refusals(tool: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
    """Wrap a tool so that a WeftError becomes an MCP tool error, which the model can read."""

    @wraps(tool)
    async def called(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await tool(*args, **kwargs)
        except WeftError as error:
            raise ToolRefusal(str(error)) from error

    return called


def _within(limit: int) -> int:
    return max(1, min(limit, _MOST_HITS))
