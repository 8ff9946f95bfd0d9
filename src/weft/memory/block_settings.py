"""What a block is: its type, schema, permission, description, label, limit, and whether it is pinned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weft.errors import InvalidEdit, PermissionDenied
from weft.memory.access import BlockAccess
from weft.memory.permission import Action, Rights, wider
from weft.store.blocks import BlockRows
from weft.types.memory import BlockType, Permission
from weft.types.schema import BlockSchema, schema_to_dict

_FIXED_TYPES = (BlockType.CORE, BlockType.LOG)


def check_label(label: str) -> None:
    """Raise InvalidEdit unless a label is one line with something on it."""
    if not label.strip() or label.splitlines() != [label]:
        raise InvalidEdit("A block needs a label of one line: give it one.")


class BlockSettings:
    """The settings of blocks, each with a method that changes it. An agent needs the right to overwrite."""

    _rows: BlockRows
    _access: BlockAccess

    async def set_block_pinned(
        self, agent_id: str, label: str, pinned: bool, *, is_system: bool = False
    ) -> None:
        await self._change(agent_id, label, {"pinned": pinned}, is_system=is_system)

    async def set_block_permission(
        self, agent_id: str, label: str, permission: Permission, *, is_system: bool = False
    ) -> None:
        """Set what the agent may do with a block. Only the system may widen it.

        Raises:
            PermissionDenied: the agent would give itself more than it has.
        """
        old = (await self._access.get(agent_id, label)).permission
        if not is_system and wider(permission, old):
            raise PermissionDenied(
                f"The block {label!r} has the permission {old.value}: only its owner may widen it to "
                f"{permission.value}."
            )
        await self._change(agent_id, label, {"permission": permission}, is_system=is_system)

    async def set_block_description(
        self, agent_id: str, label: str, description: str, *, is_system: bool = False
    ) -> None:
        await self._change(agent_id, label, {"description": description}, is_system=is_system)

    async def rename_block(self, agent_id: str, label: str, new: str, *, is_system: bool = False) -> None:
        """Give a block another label. Raises StoreError if the agent has one of that label."""
        check_label(new)
        await self._change(agent_id, label, {"label": new}, is_system=is_system)

    async def set_block_limit(
        self, agent_id: str, label: str, char_limit: int, *, is_system: bool = False
    ) -> None:
        """Set how many characters a block may hold. Raises StoreError for fewer than one."""
        if char_limit < 1:
            raise InvalidEdit(f"A block cannot hold {char_limit} characters: give a number from 1 up.")
        await self._change(agent_id, label, {"char_limit": char_limit}, is_system=is_system)

    async def set_block_type(
        self, agent_id: str, label: str, block_type: BlockType, *, is_system: bool = False
    ) -> None:
        """Change what a block is for.

        Raises:
            PermissionDenied: an agent may not change a core block or a log to another type.
        """
        old = (await self._access.get(agent_id, label)).block_type
        if old in _FIXED_TYPES and block_type != old and not is_system:
            raise PermissionDenied(
                f"The block {label!r} is a {old.value} block and stays one: only the system may change that."
            )
        await self._change(agent_id, label, {"block_type": block_type}, is_system=is_system)

    async def update_block_schema(
        self, agent_id: str, label: str, schema: BlockSchema, *, is_system: bool = False
    ) -> None:
        """Give a block another schema of the same kind.

        Raises:
            StoreError: the kind differs, so that the content would no longer be shown.
        """
        old, new = (await self._access.get(agent_id, label)).schema, schema_to_dict(schema)
        if new.get("kind") != old.get("kind"):
            raise InvalidEdit(
                f"The block {label!r} is a {old.get('kind')} and cannot become a {new.get('kind')}: "
                "make a new block."
            )
        await self._change(agent_id, label, {"schema": new}, is_system=is_system)

    async def _change(
        self, agent_id: str, label: str, changes: Mapping[str, Any], *, is_system: bool
    ) -> None:
        info = await self._access.get(agent_id, label)
        await self._access.authorize(Action.OVERWRITE, info, Rights(info.permission), is_system=is_system)
        await self._rows.update(info.id, changes)
