"""Which change an undo takes back, and which a redo brings back. Pure: it reads the list of changes."""

from __future__ import annotations

from collections.abc import Sequence

from weft.types.memory import BlockVersion


def undoable(history: Sequence[BlockVersion]) -> BlockVersion | None:
    """The newest edit, or redone edit, that no undo took back. The making of the block stays."""
    taken_back = {entry.undoes for entry in history if entry.kind == "undo"}
    open_edits = [e for e in history[1:] if e.kind != "undo" and e.version not in taken_back]
    return open_edits[-1] if open_edits else None


def redoable(history: Sequence[BlockVersion]) -> BlockVersion | None:
    """The newest undo that no redo took back, unless an edit came after it."""
    taken_back = {entry.undoes for entry in history if entry.kind == "redo"}
    for entry in reversed(history):
        if entry.kind in ("edit", "overwrite"):
            return None
        if entry.kind == "undo" and entry.version not in taken_back:
            return entry
    return None
