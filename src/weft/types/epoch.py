"""Epochs: stretches of a session in which every request begins with the bytes of the one before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import blake2b

from weft.types.codec import Json
from weft.types.message import ToolDefinition
from weft.types.section import OUTSIDE, Section


def digest_of(text: str) -> str:
    """Return a short hash of a text, by which the ledger knows it."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=10).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenItem(Json):
    """A piece that the model can see, by its layer, its id there, and the hash of its text.

    `text` is stored where a later change is shown as a difference. An item without a digest is gone: the
    model was told that it no longer holds. A `hidden` one had no room when the epoch began; it is attached
    only after it changes.
    """

    layer: str
    id: str
    digest: str = ""
    origin: str = "operator"
    title: str = ""
    text: str = ""
    hidden: bool = False

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
    seen: tuple[SeenItem, ...] = ()
    content: str | None = None

    @property
    def is_empty(self) -> bool:
        return not self.text and not self.seen and self.content is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch(Json):
    """What one epoch froze: tools, system sections, and the number of the first message that is shown.

    An epoch without an `id` is not stored yet. `why` says why it began. `folded` is the last message of the
    summary that it shows, and results of tools up to the message `masked` are shortened. `statics` has a hash
    of the static text of each layer, so that a changed file can be named. The provider's cache goes cold some
    time after `asked_at`, the time of the newest request.
    """

    id: int = field(default=0, compare=False)
    number: int = 1
    why: str = ""
    first: int = 1
    folded: int = 0
    masked: int = 0
    recipe: str = ""
    provider: str = ""
    model: str = ""
    limit: int = 0
    tools: tuple[ToolDefinition, ...] = ()
    sections: tuple[Section, ...] = ()
    seen: tuple[SeenItem, ...] = ()
    statics: Mapping[str, str] = field(default_factory=dict)
    began_at: datetime | None = None
    asked_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Ledger:
    """Everything that the model can see, by layer and id, with the message that it came with (0: frozen)."""

    items: Mapping[tuple[str, str], tuple[SeenItem, int]] = field(default_factory=dict)

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

    @property
    def outside(self) -> tuple[str, ...]:
        """Where text of strangers comes from that was attached."""
        items = [item for item, number in self.items.values() if number and item.origin in OUTSIDE]
        return tuple(dict.fromkeys(f"{item.layer} ({item.origin})" for item in items))

    @property
    def hidden(self) -> frozenset[tuple[str, str]]:
        """What had no room when the epoch began, and was not attached since."""
        return frozenset(key for key, (item, _) in self.items.items() if item.hidden)

    def of_layer(self, layer: str) -> list[tuple[SeenItem, int]]:
        return [entry for (name, _), entry in self.items.items() if name == layer]


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """Tokens of the history: it is folded when it passes `high`, and then down to `low`.

    A history that was cut a short time ago is folded when it passes `due`, which is no less than `high`. One
    that grows fast is folded down to `target`, which is no more than `low`.
    """

    high: int
    low: int
    due: int
    target: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochStep:
    """What a turn adds to its epoch: the attachments of its messages, by their place in the exchange.

    An epoch without an id begins with this turn. `hidden` names what had no room when it began, by layer and
    id. `notice` tells the person what is no longer shown word for word. `outside` names the text of strangers
    that is attached to messages in view. `forgets` is how often something had been taken out of memory when
    the turn read it: if that happens again before the turn ends, its epoch ends with it.
    """

    epoch: Epoch
    attachments: Mapping[int, Attachment] = field(default_factory=dict)
    marks: Marks = Marks(high=0, low=0, due=0, target=0)
    hidden: frozenset[tuple[str, str]] = frozenset()
    notice: str = ""
    outside: tuple[str, ...] = ()
    forgets: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochView:
    """The running epoch of a session, if there is one, and the attachments of its messages by number.

    `ended_why` is why the last one ended, if none is running, and `count` how many there were. The
    attachments of one that ended because it was full are there too. `limit`, `first` and `folded` are those
    of the newest. `cut_at` is the message with which the history was last folded or cut, or 0. `forgets` is
    how often something was taken out of memory.
    """

    epoch: Epoch | None = None
    attachments: Mapping[int, Attachment] = field(default_factory=dict)
    ended_why: str = ""
    count: int = 0
    limit: int = 0
    first: int = 1
    folded: int = 0
    cut_at: int = 0
    forgets: int = 0
