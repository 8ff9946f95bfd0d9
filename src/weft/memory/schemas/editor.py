"""What the operations of all kinds share: the part they work on, the permission, and the limit.

Every operation checks everything before it writes anything, because the document below has no rollback: the
permission, the read-only marks, the shape, the value, and how large the block would become.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from weft.errors import InvalidEdit, LimitExceeded, PermissionDenied, did_you_mean
from weft.memory.containers import Containers
from weft.memory.permission import READ_WRITE, Action, Rights
from weft.memory.schemas.base import content_of, kind_for, measure
from weft.types.memory import Permission
from weft.types.schema import BlockSchema

P = ParamSpec("P")
T = TypeVar("T")
S = TypeVar("S", bound=BlockSchema)
E = TypeVar("E", bound="Editor")

Section = str | tuple[str, ...]
"""A section of a composite by its name; of a composite inside a composite by its path."""


@dataclass(frozen=True, slots=True)
class Part(Generic[S]):
    """What an operation works on: the whole block, or a section. `place` is the prefix of its containers."""

    schema: S
    place: str
    path: tuple[str, ...]
    name: str

    @property
    def inline_name(self) -> str:
        """The name inside of a sentence."""
        return f"{self.name[0].lower()}{self.name[1:]}"


def exclusive(operation: Callable[Concatenate[E, P], T]) -> Callable[Concatenate[E, P], T]:
    """Let nobody else touch the block between an operation's checks and its write."""

    @wraps(operation)
    def run(self: E, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with self._block.lock:
            return operation(self, *args, **kwargs)

    return run


class Editor:
    """A block as one holder may edit it. The operations of each kind are in a subclass."""

    def __init__(self, block: Containers, rights: Rights = READ_WRITE) -> None:
        self._block, self._rights = block, rights

    @property
    def permission(self) -> Permission:
        return self._rights.permission

    @property
    def label(self) -> str:
        return self._block.label

    @property
    def schema(self) -> BlockSchema:
        return self._block.schema

    def _open(self, cls: type[S], action: Action, section: Section | None, is_system: bool) -> Part[S]:
        """Return the part to work on, if the holder may do this to it and it has the right schema."""
        self._rights.check(action, self.label, is_system=is_system)
        part: Part[Any] = Part(self.schema, "", (), f"The block {self.label!r}")
        path = () if section is None else (section,) if isinstance(section, str) else tuple(section)
        for name in path:
            part = self._enter(part, name, is_system)
        if not isinstance(part.schema, cls):
            kind = kind_for(part.schema)
            how = f" with section={section!r}" if path and kind.sections(part.schema) is None else ""
            raise InvalidEdit(f"{part.name} is a {part.schema.kind}: use {kind.operations}{how}.")
        return part

    def _enter(self, part: Part[Any], name: str, is_system: bool) -> Part[Any]:
        kind = kind_for(part.schema)
        sections = kind.sections(part.schema)
        if sections is None:
            raise InvalidEdit(f"{part.name} is a {part.schema.kind} without sections: use {kind.operations}.")
        by_name = {section.name: section for section in sections}
        if name not in by_name:
            raise InvalidEdit(f"{part.name} has no section {name!r}: {did_you_mean(str(name), by_name)}")
        inside = f"The section {name!r} of the block {self.label!r}"
        if by_name[name].read_only and not is_system:
            raise PermissionDenied(f"{inside} is read-only: only the system may write it.")
        place = self._block.section(name, part.place)
        return Part(by_name[name].schema, place, (*part.path, name), inside)

    def _fit(self, part: Part[Any], new: Any) -> None:
        """Refuse content that would make the block larger than its limit. Shrinking is always allowed."""
        if self._block.char_limit is not None:
            content = content_of(self._block)
            changed = _put(content, part.path, new)
            self._fit_size(measure(self.schema, content), measure(self.schema, changed))

    def _fit_size(self, before: int, after: int) -> None:
        limit = self._block.char_limit
        if limit is not None and after > limit and after > before:
            raise LimitExceeded(label=self.label, limit=limit, needed=after)


def _put(content: Any, path: tuple[str, ...], new: Any) -> Any:
    """Replace one part of a content."""
    if not path:
        return new
    return {**content, path[0]: _put(content[path[0]], path[1:], new)}
