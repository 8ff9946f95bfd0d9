"""The permissions of memory blocks: one table, and the rights that are looked up in it.

Read-only marks of fields and sections come on top; the editors check them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Protocol

from weft.errors import PermissionDenied
from weft.types.memory import Permission


class Action(StrEnum):
    """What is done to a block."""

    READ = "read"
    APPEND = "append"
    OVERWRITE = "overwrite"
    DELETE = "delete"


class Verdict(IntEnum):
    """The table's answer for an action; a larger one allows more."""

    REFUSED, CONSENT, ALLOWED = range(3)


_YES, _ASK, _NO = Verdict.ALLOWED, Verdict.CONSENT, Verdict.REFUSED

# Permission                read  append  overwrite  delete
_ROWS = {
    Permission.READ_ONLY: (_YES, _NO, _NO, _NO),
    Permission.PARTNER: (_YES, _ASK, _ASK, _NO),
    Permission.HUMAN: (_YES, _ASK, _ASK, _NO),
    Permission.APPEND: (_YES, _YES, _NO, _NO),
    Permission.READ_WRITE: (_YES, _YES, _YES, _NO),
    Permission.ADMIN: (_YES, _YES, _YES, _YES),
}

MATRIX: Mapping[Permission, Mapping[Action, Verdict]] = {
    permission: dict(zip(Action, row, strict=True)) for permission, row in _ROWS.items()
}


@dataclass(frozen=True, slots=True)
class Rights:
    """What the holder of a block may do with it.

    `consented`: somebody agreed to what the holder does. `append_only`: the block is a log.
    """

    permission: Permission = Permission.READ_WRITE
    consented: bool = False
    append_only: bool = False

    def check(self, action: Action, label: str, *, is_system: bool = False) -> None:
        """Check that an action is allowed, was consented to, or is the system's own.

        Raises:
            PermissionDenied: it is not; the message names who could change that.
        """
        if is_system:
            return
        if self.append_only and action is Action.OVERWRITE:
            raise PermissionDenied(
                f"The block {label!r} is a log and keeps what it holds: add to it instead."
            )
        verdict = MATRIX[self.permission][action]
        if not (verdict is Verdict.ALLOWED or (verdict is Verdict.CONSENT and self.consented)):
            raise PermissionDenied(_refusal(action, self.permission, label))


READ_WRITE = Rights()


def needs_consent(action: Action, permission: Permission) -> bool:
    """Check whether somebody has to be asked before the action."""
    return MATRIX[permission][action] is Verdict.CONSENT


def wider(permission: Permission, than: Permission) -> bool:
    """Check whether a permission allows more than another for at least one action."""
    return any(MATRIX[permission][action] > MATRIX[than][action] for action in Action)


def _refusal(action: Action, permission: Permission, label: str) -> str:
    block = f"The block {label!r} has the permission {permission.value}"
    if needs_consent(action, permission):
        who = "its owner" if permission is Permission.PARTNER else "a person"
        return f"{block} and was not changed: ask {who} to agree first."
    if action is Action.DELETE:
        return f"{block} and cannot be deleted: ask its owner for {Permission.ADMIN.value}."
    if permission is Permission.APPEND:
        return f"{block}: add to it instead, or ask its owner for {Permission.READ_WRITE.value}."
    return f"{block} and cannot be written: ask its owner for {Permission.READ_WRITE.value}."


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsentRequest:
    """What somebody is asked to agree to."""

    label: str
    action: Action
    permission: Permission
    agent_id: str = ""
    detail: str = ""


class Consent(Protocol):
    """Somebody who can agree to a write: the partner or a human."""

    async def ask(self, request: ConsentRequest) -> bool: ...


class RefuseAll:
    """Refuses, because nobody can be asked."""

    async def ask(self, request: ConsentRequest) -> bool:
        return False
