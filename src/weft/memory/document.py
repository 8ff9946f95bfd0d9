"""A memory block as one agent holds it, with the operations of every kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from weft.memory.blockdoc import BlockDoc
from weft.memory.cache import LoadedBlock
from weft.memory.events import BlockChanged, Subscription
from weft.memory.permission import READ_WRITE, Action, Rights
from weft.memory.schemas.base import content_of
from weft.memory.schemas.editor import Editor, Section, exclusive
from weft.memory.schemas.list import ListEditor
from weft.memory.schemas.log import LogEditor
from weft.memory.schemas.map import MapEditor
from weft.memory.schemas.registry import render_block
from weft.memory.schemas.text import TextEditor
from weft.types.schema import TextSchema

__all__ = ["BlockChanged", "BlockDoc", "Document", "Section", "Subscription"]

E = TypeVar("E", bound=Editor)


class Document(TextEditor, MapEditor, ListEditor, LogEditor):
    """A handle on the one document of a block in this process: who holds it, and what they may do.

    Edits can be read at once, and by every handle of the block. Subscribers hear of them on `commit`, others
    once the store has persisted them. `is_system` passes over the permission and the read-only marks, never
    over limits and types; `loaded` is what must live as long as the handle. Operations of a section's own
    schema take `section=`.

    `version` is what was read: the state of the block when the handle was made or last read. A whole
    text that is written with it as `base` counts as a change of that state.
    """

    _block: BlockDoc

    def __init__(
        self,
        block: BlockDoc,
        rights: Rights = READ_WRITE,
        *,
        accessor: str | None = None,
        loaded: LoadedBlock | None = None,
    ) -> None:
        super().__init__(block, rights)
        self._loaded, self.accessor = loaded, accessor
        self.version = "" if loaded is None else loaded.version

    def using(self, editor: type[E]) -> E:
        """Return the operations of another kind of blocks, for the same holder."""
        return editor(self._block, self._rights)

    @exclusive
    def text(self, *, section: Section | None = None) -> str:
        """Read the whole text, whatever part of it a viewport shows."""
        part = self._open(TextSchema, Action.READ, section, True)
        self._note_version()
        return self._block.text(part.place)

    @exclusive
    def render(self) -> str:
        """Render the block as a model reads it."""
        self._note_version()
        return render_block(self._block)

    @exclusive
    def content(self) -> Any:
        """Read all that the block holds as plain values: a text, a table of fields, items, or sections."""
        self._note_version()
        return content_of(self._block)

    def _note_version(self) -> None:
        if self._loaded is not None:
            self.version = self._loaded.version

    def commit(self) -> None:
        """End the current edit and notify the subscribers."""
        self._block.commit()

    def subscribe_root(self, callback: Callable[[BlockChanged], object]) -> Subscription:
        """Call back after every change: local edits on commit, those of others as they come in."""
        return self._block.subscribe_root(callback)
