"""Authorization of agents for blocks, with a question to a person where the permission wants one."""

from __future__ import annotations

from dataclasses import replace

from weft.errors import UnknownName
from weft.memory.cache import BlockCache, LoadedBlock
from weft.memory.document import Document
from weft.memory.permission import Action, Consent, ConsentRequest, Rights, needs_consent
from weft.store.blocks import BlockRows
from weft.types.memory import BlockInfo, BlockType, Permission
from weft.types.person import shared_label


def document_of(block: LoadedBlock, agent_id: str, permission: Permission) -> Document:
    """Return a handle on a block for an agent that has this permission."""
    return Document(block.doc, _rights(block.info, permission), accessor=agent_id, loaded=block)


def _rights(info: BlockInfo, permission: Permission) -> Rights:
    return Rights(permission, append_only=info.block_type is BlockType.LOG)


class BlockAccess:
    """Finds the blocks of agents and authorizes what they do with them."""

    def __init__(self, rows: BlockRows, cache: BlockCache, consent: Consent) -> None:
        self._rows, self._cache, self._consent = rows, cache, consent

    async def get(self, agent_id: str, label: str) -> BlockInfo:
        """Return the agent's own block of that label.

        Raises:
            UnknownName: the agent has no such block.
        """
        info = await self._rows.find(agent_id, label)
        if info is None:
            raise UnknownName(f"{agent_id!r} has no block {label!r}: check its label.")
        return info

    async def find(self, agent_id: str, label: str) -> tuple[BlockInfo, Permission] | None:
        """Find the agent's own block of that label, else one that is shared with it, and what it may do.

        `LABEL@OWNER` names a shared block whose label is not enough.
        """
        info = await self._rows.find(agent_id, label)
        if info is not None:
            return info, info.permission
        every = await self._rows.list_shared(agent_id)
        shares = [share for share in every if label in (share.label, shared_label(share.label, share.owner))]
        if len(shares) > 1:
            names = ", ".join(shared_label(share.label, share.owner) for share in shares)
            raise UnknownName(
                f"Several people share a block {label!r} with {agent_id!r}: name one of {names}."
            )
        shared = await self._rows.find(shares[0].owner, shares[0].label) if shares else None
        return None if shared is None else (shared, shares[0].permission)

    async def open(
        self, agent_id: str, label: str, action: Action, *, is_system: bool
    ) -> tuple[LoadedBlock, Document]:
        """Load a block for an action: the agent's own, or one that is shared with it.

        Raises:
            PermissionDenied: the agent may not do this.
            UnknownName: there is no such block, or several agents share one.
        """
        info, permission = await self.find(agent_id, label) or (await self.get(agent_id, label), None)
        rights = _rights(info, permission or info.permission)
        rights = await self.authorize(action, info, rights, is_system=is_system)
        block = await self._cache.find(info)
        return block, Document(block.doc, rights, accessor=agent_id, loaded=block)

    async def authorize(self, action: Action, info: BlockInfo, rights: Rights, *, is_system: bool) -> Rights:
        """Check that the owner of a block may do this, and ask for consent if needed.

        Returns the rights, with the consent.

        Raises:
            PermissionDenied: the agent may not do this.
        """
        is_hopeless = rights.append_only and action is Action.OVERWRITE
        if not is_system and not is_hopeless and needs_consent(action, rights.permission):
            request = ConsentRequest(
                label=info.label, action=action, permission=rights.permission, agent_id=info.agent_id
            )
            rights = replace(rights, consented=await self._consent.ask(request))
        rights.check(action, info.label, is_system=is_system)
        return rights
