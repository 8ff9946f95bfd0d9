"""The content of one block: named containers of a Loro document.

Everything lies in root containers, whose names say what they hold: two processes that start a list or a
counter at the same time start the same one, and neither hides the other's.

    text                        the text of a text block
    fields                      the values of a map; for lists and counters, that they were set
    list:NAME, counter:NAME     a map's lists and counters
    items, entries              the items of a list, the entries of a log
    section:NAME:...            the same again, for a section of a composite
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import RLock
from typing import Any
from urllib.parse import quote

from loro import LoroDoc

from weft.memory.loro_adapter import guarded, value_of
from weft.types.schema import BlockSchema


class Containers:
    """Texts, lists, maps and counters by the names of their roots, and what the block that has them is.

    Hold `lock` for several steps that belong together. `schema`, `label` and `char_limit` may be replaced;
    content that a new schema does not show is kept.
    """

    def __init__(self, *, schema: BlockSchema, label: str, char_limit: int | None, doc: LoroDoc) -> None:
        self.schema, self.label, self.char_limit = schema, label, char_limit
        self.lock = RLock()
        self._doc = doc

    @contextmanager
    def _loro(self, done: str) -> Iterator[None]:
        with self.lock, guarded(f"The block {self.label!r} could not be {done}"):
            yield

    @staticmethod
    def section(name: str, place: str = "") -> str:
        """Return the prefix of a section's containers, inside of another section or not."""
        return f"{place}section:{quote(name, safe='')}:"

    def text(self, place: str = "") -> str:
        with self._loro("read"):
            return self._doc.get_text(f"{place}text").to_string()

    def text_length(self, place: str = "") -> int:
        with self._loro("read"):
            return self._doc.get_text(f"{place}text").len_unicode

    def splice_text(self, start: int, removed: int, added: str, place: str = "") -> None:
        with self._loro("written"):
            self._doc.get_text(f"{place}text").splice(start, removed, added)

    def value(self, name: str, place: str = "") -> Any:
        """Read a value of a map, or None."""
        with self._loro("read"):
            return value_of(self._doc.get_map(f"{place}fields").get(name))

    def put_value(self, name: str, value: Any, place: str = "") -> None:
        """Set a value of a map; None removes it."""
        with self._loro("written"):
            fields = self._doc.get_map(f"{place}fields")
            if value is not None:
                fields.insert(name, value)
            elif name in fields:
                fields.delete(name)

    def items(self, root: str) -> list[Any]:
        with self._loro("read"):
            items = self._doc.get_list(root).get_deep_value()
            return items if isinstance(items, list) else []

    def length(self, root: str) -> int:
        with self._loro("read"):
            return len(self._doc.get_list(root))

    def newest(self, root: str, limit: int) -> list[Any]:
        """Read the last items of a list, the last first, and no more than these."""
        with self._loro("read"):
            items = self._doc.get_list(root)
            size = len(items)
            return [value_of(items.get(at)) for at in range(size - 1, max(size - limit, 0) - 1, -1)]

    def splice_items(self, root: str, start: int, removed: int, added: Sequence[Any]) -> None:
        with self._loro("written"):
            items = self._doc.get_list(root)
            if removed:
                items.delete(start, removed)
            for offset, item in enumerate(added):
                items.insert(start + offset, item)

    def count(self, root: str) -> float:
        with self._loro("read"):
            return self._doc.get_counter(root).value

    def add_to_counter(self, root: str, by: float) -> None:
        with self._loro("written"):
            self._doc.get_counter(root).increment(float(by))
