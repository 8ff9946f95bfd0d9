"""Where it is decided whether an agent may do something with a block, and who is asked if need be."""

from __future__ import annotations

from dataclasses import dataclass

from weft.errors import StoreError
from weft.memory.cache import BlockCache, LoadedBlock
from weft.memory.document import Document
from weft.memory.permission import Action, Consent, ConsentRequest, check, needs_consent
from weft.store.base import BlockRows
from weft.types.memory import BlockInfo, BlockType, Permission


@dataclass(frozen=True, slots=True)
class Access:
    """A block as one agent may use it."""

    info: BlockInfo
    permission: Permission

    @property
    def append_only(self) -> bool:
        return self.info.block_type is BlockType.LOG

    def document(self, held: LoadedBlock, accessor: str, *, consented: bool = False) -> Document:
        return Document(
            held.doc,
            accessor=accessor,
            permission=self.permission,
            consented=consented,
            append_only=self.append_only,
            loaded=held,
        )


class Door:
    """Lets agents at their blocks, within the permission each block has."""

    def __init__(self, rows: BlockRows, cache: BlockCache, consent: Consent) -> None:
        self._rows, self._cache, self._consent = rows, cache, consent

    async def own(self, agent_id: str, label: str) -> Access | None:
        info = await self._rows.find(agent_id, label)
        return None if info is None else Access(info, info.permission)

    async def required(self, agent_id: str, label: str) -> Access:
        """Raises StoreError if the agent has no such block."""
        access = await self.own(agent_id, label)
        if access is None:
            raise StoreError(f"{agent_id!r} has no block {label!r}: create it first.")
        return access

    async def writable(
        self, agent_id: str, label: str, action: Action, *, is_system: bool
    ) -> tuple[LoadedBlock, Document]:
        """A block to do this to. Raises PermissionDenied where that is not allowed."""
        access = await self.required(agent_id, label)
        consented = await self.allow(
            action, access, agent_id, append_only=access.append_only, is_system=is_system
        )
        held = await self._cache.find(access.info)
        return held, access.document(held, agent_id, consented=consented)

    async def allow(
        self, action: Action, access: Access, agent_id: str, *, is_system: bool, append_only: bool = False
    ) -> bool:
        """Whether somebody agreed. Raises PermissionDenied where the action is not allowed."""
        consented = False
        hopeless = append_only and action is Action.OVERWRITE
        if not is_system and not hopeless and needs_consent(action, access.permission):
            request = ConsentRequest(
                label=access.info.label, action=action, permission=access.permission, agent_id=agent_id
            )
            consented = await self._consent.ask(request)
        check(
            action,
            permission=access.permission,
            label=access.info.label,
            consented=consented,
            append_only=append_only,
            is_system=is_system,
        )
        return consented
