"""Epochs: stretches of a session in which every request begins with the bytes of the one before."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import blake2b
from typing import Any

from weft.types.codec import Json
from weft.types.message import ToolDefinition
from weft.types.section import Section

ONCE = "once:"
"""The start of the id of a piece that one turn alone shows. Its absence later means nothing."""


def digest_of(text: str) -> str:
    """Return a short hash of a text, by which the model's view knows it."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=10).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenItem(Json):
    """A piece that the model can see, by its layer, its id there, and the hash of its text.

    `text` is stored where a later change is shown as a difference. An item without a digest is gone: the
    model was told that it no longer holds.
    """

    layer: str
    id: str
    digest: str = ""
    origin: str = "operator"
    outside: str = ""
    title: str = ""
    text: str = ""

    @property
    def key(self) -> tuple[str, str]:
        return self.layer, self.id


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment(Json):
    """The text that goes with one message of an epoch, and what the model sees through it.

    It is sent with that message for as long as the epoch lasts. `content`, if it is not None, is what was
    sent in place of the message's own text, because there was no room for all of it.
    """

    text: str = ""
    tokens: int = 0
    seen: tuple[SeenItem, ...] = ()
    content: str | None = None

    @property
    def is_empty(self) -> bool:
        return not self.text and not self.seen and self.content is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch(Json):
    """What one epoch froze: tools, system sections, and the number of the first message that is shown.

    `why` says why it began. An epoch without an `id` is not stored yet. `folded` is the last message that
    stands in a summary, and results of tools up to the message `masked` are shortened. `statics` has a hash
    of the static text of each layer, so that a changed file can be named.
    """

    id: int = field(default=0, compare=False)
    number: int = 1
    why: str = ""
    first: int = 1
    folded: int = 0
    fold_id: int = 0
    masked: int = 0
    recipe: str = ""
    provider: str = ""
    model: str = ""
    limit: int = 0
    tools: tuple[ToolDefinition, ...] = ()
    sections: tuple[Section, ...] = ()
    seen: tuple[SeenItem, ...] = ()
    statics: dict[str, str] = field(default_factory=dict)
    began_at: datetime | None = None
    asked_at: datetime | None = None

    def __post_init__(self) -> None:
        for name in ("began_at", "asked_at"):
            value: Any = getattr(self, name)
            if isinstance(value, str):
                object.__setattr__(self, name, datetime.fromisoformat(value))


@dataclass(frozen=True, slots=True)
class Ledger:
    """Everything that the model can see, by layer and id, with the message that it came with (0: frozen)."""

    items: dict[tuple[str, str], tuple[SeenItem, int]]

    @staticmethod
    def of(epoch: Epoch, attachments: Iterable[tuple[int, Attachment]]) -> Ledger:
        """Return the ledger of an epoch: what it froze, then the attachments in the order of messages."""
        items = {item.key: (item, 0) for item in epoch.seen}
        for number, attachment in attachments:
            items |= {item.key: (item, number) for item in attachment.seen}
        return Ledger({key: entry for key, entry in items.items() if entry[0].digest})

    def find(self, layer: str, id_: str) -> SeenItem | None:
        entry = self.items.get((layer, id_))
        return entry[0] if entry else None

    def of_layer(self, layer: str) -> list[tuple[SeenItem, int]]:
        return [entry for (name, _), entry in self.items.items() if name == layer]
