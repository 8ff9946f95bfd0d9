"""The memory of agents: their blocks, the blocks shared with them, an archive, and one search over all."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any, Literal

from weft.errors import PermissionDenied, UnknownName
from weft.memory.access import BlockAccess, document_of
from weft.memory.block_settings import BlockSettings, check_label
from weft.memory.blockdoc import NO_VERSION, BlockDoc
from weft.memory.cache import BlockCache
from weft.memory.document import Document
from weft.memory.edits import BlockEdit, apply_edit
from weft.memory.permission import Action, Consent, RefuseAll, Rights, wider
from weft.memory.redact import masked_blocks
from weft.memory.schemas.registry import render_block
from weft.recall.find import Finder
from weft.store.base import Archive, Scope
from weft.store.blocks import BlockRows, Change, MaskedBlock, Moment, NewBlock
from weft.types.memory import (
    ArchivalEntry,
    BlockInfo,
    BlockType,
    BlockVersion,
    Permission,
    RenderedBlock,
    Share,
    SharedBlock,
)
from weft.types.person import person_author
from weft.types.schema import BlockSchema, TextSchema, schema_to_dict
from weft.types.search import MemorySearchResult, SearchContentType, SearchOptions

_PLAIN_TEXT = TextSchema()
_PLAIN_SEARCH = SearchOptions()
_TRIES = 3
"""How often changed blocks are rendered again while somebody else goes on changing them."""


class MemoryStore(BlockSettings):
    """Blocks of agents with permissions, sharing, history and search. A write is safe when it returns."""

    def __init__(
        self,
        rows: BlockRows,
        archive: Archive,
        finder: Finder,
        *,
        consent: Consent | None = None,
        cache_size: int = 256,
    ) -> None:
        self._rows, self._archive, self._finder = rows, archive, finder
        self._named_author = ""
        self._cache = BlockCache(rows, size=cache_size)
        self._access = BlockAccess(rows, self._cache, consent or RefuseAll())

    def with_consent(self, consent: Consent) -> MemoryStore:
        """Return the same memory, with somebody who can agree to writes that need it."""
        memory = copy(self)
        memory._access = BlockAccess(self._rows, self._cache, consent)
        return memory

    def by(self, person: str, way: str) -> MemoryStore:
        """Return the same memory for writes of a person, such as `by("owner", "command line")`.

        The history names them as the author. Without this, the author is the agent itself.
        """
        return self.authored(person_author(person, way))

    def authored(self, author: str) -> MemoryStore:
        """Return the same memory for writes of an author, as the history names them."""
        memory = copy(self)
        memory._named_author = author
        return memory

    def _author(self, agent_id: str, *, is_system: bool) -> str:
        return self._named_author or ("system" if is_system else agent_id)

    # --- blocks

    async def create_block(  # noqa: PLR0913 - the public contract
        self,
        agent_id: str,
        label: str,
        *,
        text: str = "",
        description: str = "",
        block_type: BlockType = BlockType.WORKING,
        schema: BlockSchema = _PLAIN_TEXT,
        permission: Permission = Permission.READ_WRITE,
        char_limit: int = 5000,
        pinned: bool = False,
        is_system: bool = False,
    ) -> str:
        """Create a block and return its id; a text block can begin with a text.

        Raises:
            StoreError: the agent has a block of that label, or the text is too long.
        """
        info = BlockInfo(
            id="",
            agent_id=agent_id,
            label=label,
            description=description,
            block_type=block_type,
            permission=permission,
            char_limit=char_limit,
            pinned=pinned,
            schema=schema_to_dict(schema),
        )
        new = _new_block(info, schema, text, author=self._author(agent_id, is_system=is_system))
        return await self._rows.create(new.info, new.first, new.rendered)

    async def create_missing(self, *blocks: BlockInfo, shared: BlockInfo | None, agent_id: str) -> None:
        """Create empty text blocks whose labels are free, and let an agent read another, in one commit."""
        author = self._author(agent_id, is_system=True)
        schema = schema_to_dict(_PLAIN_TEXT)
        new = [_new_block(replace(info, schema=schema), _PLAIN_TEXT, "", author=author) for info in blocks]
        await self._rows.create_missing(new, shared, agent_id)

    async def find_usable_block(self, agent_id: str, label: str) -> Document | None:
        """Return the agent's own block, else one that is shared with it, or None.

        Raises:
            UnknownName: several agents share a block of that label.
        """
        found = await self._access.find(agent_id, label)
        if found is None:
            return None
        info, permission = found
        return document_of(await self._cache.get(info), agent_id, permission)

    async def get_block(self, agent_id: str, label: str) -> Document | None:
        """Return the agent's own block as a document, or None. Its `version` is what was read."""
        info = await self._rows.find(agent_id, label)
        if info is None:
            return None
        return document_of(await self._cache.get(info), agent_id, info.permission)

    async def list_blocks(self, agent_id: str) -> list[BlockInfo]:
        return list(await self._rows.list(agent_id))

    async def page_blocks(
        self, agent_id: str, *, limit: int, offset: int = 0
    ) -> tuple[Sequence[BlockInfo], int]:
        """Return a page of an agent's own blocks by their labels, and the number of all."""
        return await self._rows.page(agent_id, limit=limit, offset=offset)

    async def find_block(self, agent_id: str, label: str) -> BlockInfo | None:
        """Return what an agent's own block is, without its content."""
        return await self._rows.find(agent_id, label)

    async def list_blocks_by_type(self, agent_id: str, block_type: BlockType) -> list[BlockInfo]:
        return [info for info in await self._rows.list(agent_id) if info.block_type == block_type]

    async def delete_block(self, agent_id: str, label: str, *, is_system: bool = False) -> None:
        info = await self._access.get(agent_id, label)
        Rights(info.permission).check(Action.DELETE, label, is_system=is_system)
        await self._rows.delete(info.id)
        self._cache.forget(info.id)

    # --- content

    async def get_rendered_content(self, agent_id: str, label: str) -> str | None:
        info = await self._rows.find(agent_id, label)
        return None if info is None else render_block((await self._cache.get(info)).doc)

    async def rendered_blocks(
        self, agent_id: str, *, named: Collection[str] | None = None
    ) -> Sequence[RenderedBlock]:
        """Return blocks as text: all, or only those that every turn shows and those of these ids.

        A shared block whose label another block has is called `LABEL@OWNER`.
        """
        blocks, stale = await self._rows.rendered_blocks(agent_id, named=named)
        if stale:
            await self.save_texts(agent_id)
            blocks, _ = await self._rows.rendered_blocks(agent_id, named=named)
        return blocks

    async def save_texts(self, agent_id: str | None = None) -> None:
        """Store the rendered texts of blocks that changed: those that an agent may read, or all."""
        for _ in range(_TRIES):
            stale = await self._rows.list_stale(agent_id)
            for info in stale:
                await self._cache.save_text(await self._cache.find(info))
            if not stale:
                break

    async def update_block_text(
        self, agent_id: str, label: str, text: str, *, base: str | int | None = None, is_system: bool = False
    ) -> None:
        """Replace the whole text of a block.

        With `base`, the version that was read, the text is taken as a change of that version, so that what
        others wrote since stays. Without it the text replaces what is there, and the history says so.

        Raises:
            StoreError: the block has no such version.
        """
        block, document = await self._access.open(agent_id, label, Action.OVERWRITE, is_system=is_system)

        def write(moment: Moment) -> tuple[None, dict[str, Any]]:
            if base is not None:
                merged = block.doc.rebase(text, block.point(str(base), moment))
                return document.set_text(merged, is_system=is_system), {}
            kind = "overwrite" if block.doc.text_length() else "edit"
            return document.set_text(text, is_system=is_system), {"kind": kind}

        await self._cache.change(block, write, author=self._author(agent_id, is_system=is_system))

    async def append_to_block(
        self, agent_id: str, label: str, text: str, *, own_line: bool = False, is_system: bool = False
    ) -> None:
        """Add to the end of a block, after what others wrote meanwhile; with `own_line` on a new line."""
        block, document = await self._access.open(agent_id, label, Action.APPEND, is_system=is_system)

        def edit() -> None:
            is_first = not own_line or not render_block(block.doc)
            document.append_text(text if is_first else f"\n{text}", is_system=is_system)

        await self._cache.edit(block, edit, author=self._author(agent_id, is_system=is_system))

    async def replace_in_block(
        self, agent_id: str, label: str, old: str, new: str, *, is_system: bool = False
    ) -> bool:
        """Replace the first occurrence of a text. Returns whether there was one."""
        block, document = await self._access.open(agent_id, label, Action.OVERWRITE, is_system=is_system)
        edit = partial(document.replace_text, old, new, is_system=is_system)
        return await self._cache.edit(block, edit, author=self._author(agent_id, is_system=is_system))

    async def edit_block(self, agent_id: str, label: str, edit: BlockEdit, *, is_system: bool = False) -> Any:
        """Edit a block by a verb of its schema: the agent's own, or one that is shared with it.

        Returns what a counter counts then; None for every other verb.

        Raises:
            StoreError: the block cannot do that, or the value does not fit.
            PermissionDenied: the agent may not do this.
        """
        block, document = await self._access.open(agent_id, label, edit.action, is_system=is_system)
        work = partial(apply_edit, document, edit, is_system=is_system)
        return await self._cache.edit(block, work, author=self._author(agent_id, is_system=is_system))

    async def persist_block(self, agent_id: str, label: str, *, is_system: bool = False) -> None:
        """Store what was edited through a document."""
        block = await self._cache.find(await self._access.get(agent_id, label))
        await self._cache.save(block, author=self._author(agent_id, is_system=is_system))

    # --- sharing

    async def share_block(
        self, owner: str, label: str, agent_id: str, permission: Permission, *, is_system: bool = False
    ) -> None:
        """Let another agent use a block, with a permission that is no wider than the owner's.

        Raises:
            PermissionDenied: the share would allow what the owner itself may not do.
        """
        info = await self._access.get(owner, label)
        if not is_system and (owner == agent_id or wider(permission, info.permission)):
            raise PermissionDenied(
                f"The block {label!r} has the permission {info.permission.value}: it cannot be shared "
                f"with {agent_id!r} as {permission.value}, only as something narrower."
            )
        await self._rows.share(info.id, agent_id, permission)

    async def unshare_block(self, owner: str, label: str, agent_id: str, *, is_system: bool = False) -> bool:
        return await self._rows.unshare((await self._access.get(owner, label)).id, agent_id)

    async def list_shared_blocks(self, agent_id: str) -> list[SharedBlock]:
        return list(await self._rows.list_shared(agent_id))

    async def list_shares(self, agent_id: str) -> list[Share]:
        """Return with whom an agent shares its own blocks."""
        return list(await self._rows.list_shares(agent_id))

    async def get_shared_block(self, requester: str, owner: str, label: str) -> Document | None:
        """Return another agent's block with the share's permission, or None without a share."""
        for share in await self._rows.list_shared(requester):
            if (share.owner, share.label) == (owner, label):
                info = await self._rows.find(owner, label)
                if info is not None:
                    return document_of(await self._cache.get(info), requester, share.permission)
        return None

    # --- history

    async def block_history(self, agent_id: str, label: str) -> list[BlockVersion]:
        return list(await self._rows.history((await self._access.get(agent_id, label)).id))

    async def block_at(self, agent_id: str, label: str, version: int) -> str:
        """Return the block's text as it was after a change."""
        info = await self._access.get(agent_id, label)
        states = await self._rows.states(info.id, version)
        if states is None:
            raise UnknownName(f"The block {label!r} has no version {version}: its history lists them.")
        return render_block((await self._cache.get(info)).doc.at(states[1]))

    async def undo_block(self, agent_id: str, label: str, *, is_system: bool = False) -> bool:
        """Undo the newest change that is not undone yet. Returns whether there was one."""
        return await self._reverse(agent_id, label, "undo", is_system=is_system)

    async def redo_block(self, agent_id: str, label: str, *, is_system: bool = False) -> bool:
        """Redo the newest undone change, if nothing was edited since. Returns whether there was one."""
        return await self._reverse(agent_id, label, "redo", is_system=is_system)

    async def _reverse(
        self, agent_id: str, label: str, kind: Literal["undo", "redo"], *, is_system: bool
    ) -> bool:
        block, _ = await self._access.open(agent_id, label, Action.OVERWRITE, is_system=is_system)
        return await self._cache.reverse(block, kind, author=self._author(agent_id, is_system=is_system))

    async def masked(self, text: str) -> list[MaskedBlock]:
        """Return every block that holds or held a text, with the text redacted. Nothing is written."""
        return [block async for block in masked_blocks(self._rows, self._cache, text)]

    # --- archive and search

    async def insert_archival(
        self,
        agent_id: str,
        content: str,
        metadata: Mapping[str, Any] | None = None,
        *,
        is_system: bool = False,
    ) -> str:
        return await self._archive.insert(agent_id, content, metadata)

    async def search_archival(self, agent_id: str, query: str, limit: int = 10) -> list[ArchivalEntry]:
        """Return an agent's notes that match, best first."""
        options = SearchOptions(content_types=(SearchContentType.ARCHIVAL,), limit=limit)
        hits = await self.search(agent_id, query, options)
        entries = await self._archive.list([hit.id for hit in hits])
        return [replace(entries[hit.id], score=hit.score) for hit in hits if hit.id in entries]

    async def newest_archival(self, agent_id: str, limit: int = 100) -> list[ArchivalEntry]:
        """Return an agent's notes, newest first."""
        return list(await self._archive.newest(agent_id, limit))

    async def delete_archival(
        self, entry_id: str, *, agent_id: str | None = None, is_system: bool = False
    ) -> bool:
        """Delete a note; with `agent_id` only one of that agent's. Returns whether it existed."""
        return await self._archive.delete(entry_id, agent_id=agent_id)

    async def search(
        self, agent_id: str, query: str, options: SearchOptions = _PLAIN_SEARCH
    ) -> list[MemorySearchResult]:
        """Search an agent's own memory, and what is shared with it."""
        await self.save_texts(agent_id)
        return await self._finder.search(query, Scope(owner=agent_id), options)

    async def search_all(
        self, query: str, options: SearchOptions = _PLAIN_SEARCH, *, operator: bool = False
    ) -> list[MemorySearchResult]:
        """Search the memory of everyone. Raises PermissionDenied unless the operator asks."""
        if not operator:
            raise PermissionDenied("Only the operator may search everyone's memory: use `search` instead.")
        await self.save_texts()
        return await self._finder.search(query, Scope(everyone=True), options)


def _new_block(info: BlockInfo, schema: BlockSchema, text: str, *, author: str) -> NewBlock:
    """Make the document of a new block, which begins with a text."""
    check_label(info.label)
    doc = BlockDoc(schema=schema, label=info.label, char_limit=info.char_limit)
    before = doc.frontiers()
    if text:
        Document(doc, accessor=info.agent_id).append_text(text, is_system=True)
    blob, after = doc.export_since(NO_VERSION), doc.frontiers()
    return NewBlock(info, Change(blob=blob, before=before, after=after, author=author), render_block(doc))
