"""Free text."""

from __future__ import annotations

from typing import Any

from weft.errors import InvalidEdit
from weft.memory.containers import Containers
from weft.memory.diff import splice
from weft.memory.permission import Action
from weft.memory.schemas.base import Kind
from weft.memory.schemas.editor import Editor, Part, Section, exclusive
from weft.types.schema import TextSchema, Viewport
from weft.types.value import as_text


class TextKind(Kind[TextSchema]):
    """A text. Its content is a str."""

    operations = "set_text, append_text or replace_text"

    def content(self, schema: TextSchema, block: Containers, place: str) -> str:
        return block.text(place)

    def render(self, schema: TextSchema, content: Any, *, bare: bool) -> str:
        text = str(content)
        return text if bare or schema.viewport is None else _window(text, schema.viewport)

    def check(self, schema: TextSchema, value: Any, where: str) -> str:
        return as_text(value, where)


class TextEditor(Editor):
    """The operations on text."""

    @exclusive
    def set_text(self, text: str, is_system: bool = False, *, section: Section | None = None) -> None:
        """Replace the whole text. Only what differs is written, so that edits of others meanwhile survive."""
        part = self._open(TextSchema, Action.OVERWRITE, section, is_system)
        self._write_text(part, self._block.text(part.place), as_text(text, part.name))

    @exclusive
    def append_text(self, text: str, is_system: bool = False, *, section: Section | None = None) -> None:
        """Add to the end, with nothing in between."""
        part = self._open(TextSchema, Action.APPEND, section, is_system)
        added, length = as_text(text, part.name), self._block.text_length(part.place)
        if part.path:
            self._fit(part, self._block.text(part.place) + added)
        else:
            self._fit_size(length, length + len(added))
        if added:
            self._block.splice_text(length, 0, added, part.place)

    @exclusive
    def replace_text(
        self, old: str, new: str, is_system: bool = False, *, section: Section | None = None
    ) -> bool:
        """Replace the first occurrence. Returns whether there is one."""
        part = self._open(TextSchema, Action.OVERWRITE, section, is_system)
        if not as_text(old, part.name):
            raise InvalidEdit(f"{part.name} has no empty text to replace: give the words to look for.")
        added, text = as_text(new, part.name), self._block.text(part.place)
        at = text.find(old)
        if at >= 0:
            self._write_text(part, text, f"{text[:at]}{added}{text[at + len(old) :]}")
        return at >= 0

    def set_text_in_section(self, text: str, section: Section, is_system: bool = False) -> None:
        """Replace the whole text of a section."""
        self.set_text(text, is_system, section=section)

    def _write_text(self, part: Part[TextSchema], old: str, new: str) -> None:
        if part.path:
            self._fit(part, new)
        else:
            self._fit_size(len(old), len(new))
        start, removed, added = splice(old, new)
        if removed or added:
            self._block.splice_text(start, removed, str(added), part.place)


def _window(text: str, viewport: Viewport) -> str:
    if not text:
        return ""
    lines = text.removesuffix("\n").split("\n")
    first = viewport.start_line
    last = min(first + viewport.display_lines - 1, len(lines))
    if first > len(lines):
        return f"[Showing no lines of {len(lines)}: the viewport starts at line {first}]"
    return "\n".join([f"[Showing lines {first}-{last} of {len(lines)}]", *lines[first - 1 : last]])
