"""Authorization of agents for blocks, with a question to a person where the permission wants one."""

from __future__ import annotations

from dataclasses import dataclass

from weft.errors import StoreError
from weft.memory.cache import BlockCache, LoadedBlock
from weft.memory.document import Document
from weft.memory.permission import Action, Consent, ConsentRequest, check, needs_consent
from weft.store.base import BlockRows
from weft.types.memory import BlockInfo, BlockType, Permission


@dataclass(frozen=True, slots=True)
class Grant:
    """A block, and what one agent may do with it."""

    info: BlockInfo
    permission: Permission

    @property
    def append_only(self) -> bool:
        return self.info.block_type is BlockType.LOG

    def document(self, block: LoadedBlock, accessor: str, *, consented: bool = False) -> Document:
        return Document(
            block.doc,
            accessor=accessor,
            permission=self.permission,
            consented=consented,
            append_only=self.append_only,
            loaded=block,
        )


class BlockAccess:
    """Finds the blocks of agents and authorizes what they do with them."""

    def __init__(self, rows: BlockRows, cache: BlockCache, consent: Consent) -> None:
        self._rows, self._cache, self._consent = rows, cache, consent

    async def find(self, agent_id: str, label: str) -> Grant | None:
        """Return the agent's own block of that label, or None."""
        info = await self._rows.find(agent_id, label)
        return None if info is None else Grant(info, info.permission)

    async def get(self, agent_id: str, label: str) -> Grant:
        """Return the agent's own block of that label.

        Raises:
            StoreError: the agent has no such block.
        """
        grant = await self.find(agent_id, label)
        if grant is None:
            raise StoreError(f"{agent_id!r} has no block {label!r}: create it first.")
        return grant

    async def open(
        self, agent_id: str, label: str, action: Action, *, is_system: bool
    ) -> tuple[LoadedBlock, Document]:
        """Load a block for an action.

        Raises:
            PermissionDenied: the agent may not do this.
        """
        grant = await self.get(agent_id, label)
        consented = await self.authorize(
            action, grant, agent_id, append_only=grant.append_only, is_system=is_system
        )
        block = await self._cache.find(grant.info)
        return block, grant.document(block, agent_id, consented=consented)

    async def authorize(
        self, action: Action, grant: Grant, agent_id: str, *, is_system: bool, append_only: bool = False
    ) -> bool:
        """Check that an action is allowed, and ask for consent if needed. Returns whether there was consent.

        Raises:
            PermissionDenied: the agent may not do this.
        """
        consented = False
        is_hopeless = append_only and action is Action.OVERWRITE
        if not is_system and not is_hopeless and needs_consent(action, grant.permission):
            request = ConsentRequest(
                label=grant.info.label, action=action, permission=grant.permission, agent_id=agent_id
            )
            consented = await self._consent.ask(request)
        check(
            action,
            permission=grant.permission,
            label=grant.info.label,
            consented=consented,
            append_only=append_only,
            is_system=is_system,
        )
        return consented
