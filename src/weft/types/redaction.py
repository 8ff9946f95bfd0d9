"""Redaction of a text in every form in which it may be stored. Pure.

JSON can write one text in many ways: escaped or not, inside of another JSON text, a number without quotes.
A title may hold only the beginning of the text. Names that stand in several tables are changed in one way.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from weft.types.codec import dump_json
from weft.types.epoch import Attachment, Epoch, SeenItem
from weft.types.message import Message, ToolCall, ToolDefinition
from weft.types.person import ASSISTANT, OWNER_NAME
from weft.types.receipt import Expectation, Receipt, ReceiptItem, Usage
from weft.types.schema import BlockSchema, CompositeSection, FieldDef, LogEntrySchema, Viewport
from weft.types.secret import fingerprint
from weft.types.section import Keep, Part, Place, Section, Stability

RECEIPT_KEYS = ("runs", "shared")
"""Where the row of a turn has the hashes of its receipt's runs, and of what stays the same for many turns."""

SHORTEST_PART = 4
"""The length from which a text is looked for inside of names, and its beginning at the end of titles."""

_EXCERPT_CHARS = 300
_COVER = "█"
_SHORT_ESCAPES = {'"': r"\\*\"", "\\": r"\\+", "/": r"\\*/"}
_SPACE = r"(?:\s|\\+[nrtfb]|\\+u00(?i:0[9a-d]|20|85|a0))+"
_OWN_ID = re.compile(r"[0-9a-f]{20,24}|\d{4}-\d\d-\d\d[T ]\d\d:\d\d[\d:.+-]*")
"""An id, a hash of a content, or a time."""
_SEPARATOR = re.compile(r"([:/ ])")
_VALUES: tuple[Any, ...] = (
    *(Message, ToolCall, ToolDefinition, Receipt, ReceiptItem, Usage, Expectation),
    *(Epoch, Section, Part, SeenItem, Attachment),
    *(CompositeSection, FieldDef, LogEntrySchema, Viewport, *BlockSchema.KINDS.values()),
)
_OWN_WORDS = frozenset(
    {ASSISTANT, OWNER_NAME, "kind", *BlockSchema.KINDS, *Keep, *Stability, *Place, *RECEIPT_KEYS}
    | {name for value in _VALUES for name in value.__dataclass_fields__}
    | {"user", "assistant", "tool", "system", "operator", "agent", "web", "feed", "import"}
    | {"ask", "app", "http", "mcp", "terminal", "telegram"}
    | {"new", "pending", "running", "sending", "sent", "done", "failed", "cancelled", "notice", "undo"}
    | {"Admin", "Append", "Human", "Partner", "ReadOnly", "ReadWrite", "archival", "core", "working"}
)
"""Weft's own words: as a whole name, or as a key or a value of JSON, they are nobody's text."""
_OWN_KEYS: tuple[set[str], ...] = (
    {"recipe", "counter"},
    set(RECEIPT_KEYS),
    {"tools", "sections", "seen", "statics"},
)
"""The keys of a receipt and its parts, and of what an epoch froze."""


@dataclass(frozen=True)
class Redaction:
    """A text that must be nowhere any more, and the mark that takes its place."""

    text: str
    mark: str

    @classmethod
    def of(cls, text: str, number: int = 1) -> Redaction:
        """Name the mark after the fingerprint. A later purge of the same text has a number."""
        suffix = "" if number == 1 else f"-{number}"
        return cls(text, f"[purged:{fingerprint(text)}{suffix}]")

    @cached_property
    def needle(self) -> str:
        """A part of the text that is in every value which holds the text without escapes."""
        return max(self.text.split(), key=len, default=self.text)

    @cached_property
    def _plain(self) -> re.Pattern[str]:
        parts = re.split(r"(\s+)", self.text)
        return re.compile("".join(r"\s+" if part.isspace() else re.escape(part) for part in parts))

    @cached_property
    def _escaped(self) -> re.Pattern[str]:
        parts = re.split(r"(\s+)", self.text)
        return re.compile("".join(_SPACE if part.isspace() else _any_form(part) for part in parts))

    @cached_property
    def _container(self) -> Any:
        return parse_container(self.text)

    @property
    def is_json(self) -> bool:
        """Whether the text is the JSON of a table or a list, which can be written in another order."""
        return self._container is not None

    def _pattern(self, value: str) -> re.Pattern[str]:
        return self._escaped if "\\" in value else self._plain

    def is_in(self, value: Any) -> bool:
        """Check whether the text is anywhere in a value."""
        if isinstance(value, str):
            return self._pattern(value).search(value) is not None
        if isinstance(value, dict):
            return any(self.is_in(part) for pair in value.items() for part in pair)
        if isinstance(value, list):
            return any(self.is_in(item) for item in value)
        return self._is_number(value)

    def _is_number(self, value: Any) -> bool:
        return isinstance(value, int | float) and not isinstance(value, bool) and str(value) == self.text

    def covered(self, value: Any) -> Any:
        """Cover the text, character by character, so that offsets behind it stay."""
        if isinstance(value, str):
            return self._pattern(value).sub(lambda match: _COVER * len(match[0]), value)
        if isinstance(value, list):
            return [self.covered(item) for item in value]
        if isinstance(value, dict):
            return {self.covered(key): self.covered(item) for key, item in value.items()}
        return _COVER * len(self.text) if self._is_number(value) else value

    def in_text(self, value: str) -> str:
        """Put the mark in the place of the text; JSON stays JSON."""
        data = parse_container(value)
        if data is None:
            return self._pattern(value).sub(self.mark, value)
        redacted = _Walk(self, is_own=_is_own(data)).value(data)
        text = dump_json(redacted)
        return value if text == dump_json(data) else text

    def in_excerpt(self, value: str) -> str:
        """Put the mark in the place of the text, or of its beginning at the end of the value."""
        redacted = self.in_text(value)
        if redacted != value:
            return redacted
        flat, text = " ".join(value.rstrip("….").split()), " ".join(self.text.split())
        for length in range(min(len(text), len(flat)), SHORTEST_PART - 1, -1):
            if flat.endswith(text[:length]):
                return flat[:-length] + self.mark
        return value

    def in_name(self, value: str) -> str:
        """Put the mark in the place of the text in a name, but not inside of Weft's own words.

        A text of few characters is replaced only where it is a whole part of a name.
        """
        if self.text not in value or is_own_word(value):
            return value
        if _SEPARATOR.search(self.text):
            words = _SEPARATOR.split(self.text)[::2]
            return value if set(words) <= {"", *_OWN_WORDS} else value.replace(self.text, self.mark)
        return "".join(map(self._in_part, _SEPARATOR.split(value)))

    def _in_part(self, part: str) -> str:
        if part == self.text and part not in _OWN_WORDS:
            return self.mark
        if len(self.text) < SHORTEST_PART or part in _OWN_WORDS:
            return part
        return part.replace(self.text, self.mark)

    @property
    def can_be_guarded(self) -> bool:
        """Whether the text is long enough to be somebody's, and no part of Weft's own words."""
        words = _SEPARATOR.split(self.text)[::2]
        return len(self.text) >= SHORTEST_PART and not all(_is_part_of_own(word) for word in words)

    def is_container(self, value: Any) -> bool:
        """Check whether a table or a list is what the text says as JSON, whatever the order of its keys."""
        return self.is_json and bool(value == self._container)


@dataclass(frozen=True, slots=True)
class _Walk:
    """Redaction of parsed JSON. In a value that Weft wrote, numbers stay, and short texts are excerpts."""

    redaction: Redaction
    is_own: bool

    def value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if self.redaction.is_container(value):
            return [self.redaction.mark] if isinstance(value, list) else {"purged": self.redaction.mark}
        if isinstance(value, list):
            return [self.value(item) for item in value]
        if isinstance(value, dict):
            return {self.key(key): self.value(item) for key, item in value.items()}
        if not self.is_own and self.redaction._is_number(value):
            return self.redaction.mark
        return value

    def key(self, key: str) -> str:
        return key if self._is_ours(key) else self.redaction.in_text(key)

    def _is_ours(self, value: str) -> bool:
        return is_own_word(value, "" if self.is_own else self.redaction.text)

    def text(self, text: str) -> str:
        if self._is_ours(text):
            return text
        if self.is_own and len(text) <= _EXCERPT_CHARS:
            return self.redaction.in_excerpt(text)
        return self.redaction.in_text(text)


def _is_part_of_own(word: str) -> bool:
    return any(word in own for own in _OWN_WORDS)


def is_own_word(value: str, purged: str = "") -> bool:
    """Check whether a whole value is a word of Weft's, or has the form of its ids and times.

    A value that is the purged text itself is somebody's, unless it is one of the words.
    """
    return value in _OWN_WORDS or (value != purged and _OWN_ID.fullmatch(value) is not None)


def parse_container(value: str) -> Any:
    """Parse the JSON of a table or a list. Returns None for all else, and for a table with a key twice."""
    if not value.lstrip().startswith(("{", "[")):
        return None
    try:
        return json.loads(value, object_pairs_hook=_without_doubles)
    except (ValueError, RecursionError):
        return None


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) != len(pairs):
        raise ValueError("a key is there twice")
    return table


def _is_own(data: Any) -> bool:
    """Check whether data is of a receipt, of an epoch or a schema, whose numbers are Weft's."""
    if isinstance(data, list):
        return bool(data) and all(isinstance(row, list) and _is_row(row) for row in data)
    if not isinstance(data, dict):
        return False
    return any(keys <= data.keys() for keys in _OWN_KEYS) or data.get("kind") in BlockSchema.KINDS


def _is_row(row: list[Any]) -> bool:
    """Check whether a list has the first values of an item of a receipt, as the store writes it."""
    return [type(value) for value in row[:5]] == [str, str, str, int, bool]


def _any_form(text: str) -> str:
    """Return a pattern for a text in which any character may be escaped, at any depth of JSON in JSON."""
    return "".join(map(_any_form_of_one, text))


def _any_form_of_one(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    escape = "".join(rf"\\+u(?i:{units[at : at + 2].hex()})" for at in range(0, len(units), 2))
    literal = _SHORT_ESCAPES.get(character) or re.escape(character)
    return f"(?:{literal}|{escape})"
