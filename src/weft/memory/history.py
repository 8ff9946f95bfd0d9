"""The choice of the change that an undo or a redo applies to. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from weft.types.memory import BlockVersion


def undoable(history: Sequence[BlockVersion]) -> BlockVersion | None:
    """Return the newest edit, or redone edit, that is not undone. The creation of the block is none."""
    undone = {entry.undoes for entry in history if entry.kind == "undo"}
    open_edits = [e for e in history[1:] if e.kind != "undo" and e.version not in undone]
    return open_edits[-1] if open_edits else None


def redoable(history: Sequence[BlockVersion]) -> BlockVersion | None:
    """Return the newest undo that is not redone, unless an edit came after it."""
    redone = {entry.undoes for entry in history if entry.kind == "redo"}
    for entry in reversed(history):
        if entry.kind in ("edit", "overwrite"):
            return None
        if entry.kind == "undo" and entry.version not in redone:
            return entry
    return None
