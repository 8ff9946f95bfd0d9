"""What a vendor is made of: its names, its models, its rules, and the functions for its format.

Each vendor is one file beside this one that ends with one `Vendor`. A package outside of ours does the same.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import quote

from weft.types.message import Message, ToolDefinition
from weft.types.receipt import Usage
from weft.types.reply import Reply
from weft.types.script import Script

CAREFUL: Mapping[Script, float] = {
    "latin": 1.7,
    "cyrillic": 2.6,
    "arabic": 3.1,
    "devanagari": 3.7,
    "cjk": 2.2,
    "emoji": 2.3,
    "other": 4.0,
}
"""For each script at least as much as the worst vocabulary that was measured: that of Mistral's first models
needs 2.97 tokens for one of o200k in Arabic and 3.56 in Hindi."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A family of models: those whose ids begin with `start`. What a vendor reports is believed first.

    `cache` says how the end of a stable part is marked; without it the vendor finds equal beginnings itself.
    The cache lives for `cache_seconds` after its last use and takes no beginning shorter than `cache_min`
    tokens. `cache_read` and `cache_write` are the prices of a token that is read from it and of one that is
    written to it, where a plain one costs 1; None: not known.

    `ratio` is a safe guess at how many of its tokens one token of o200k is in plain English, and `ratios` at
    those for other scripts. Where `bytes_per_token` is set, no token is believed to hold more of a script
    that is not Latin. A row that names neither is as careful as for a model that nobody knows.
    """

    start: str
    window: int = 0
    """What they read; 0 if nobody has named it."""
    max_output: int = 4_096
    cache: Literal["", "block", "breakpoint"] = ""
    cache_seconds: int = 0
    cache_read: float | None = None
    cache_write: float = 1.0
    cache_min: int = 0
    ratio: float = 1.0
    ratios: Mapping[Script, float] = field(default_factory=lambda: CAREFUL)
    bytes_per_token: float = 2.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What a vendor insists on in messages."""

    id_letters: str = "a-zA-Z0-9_-"
    longest_id: int = 64
    system_inside: bool = False
    """Whether a system message may stand inside the history."""
    user_first: bool = False
    """Whether the first message must be the user's."""
    declared_calls: bool = False
    """Whether every tool that the history calls must be declared."""

    def accepts_id(self, id_: str) -> bool:
        return re.fullmatch(f"[{self.id_letters}]{{1,{self.longest_id}}}", id_) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class WireRequest:
    """A context, ready to be written in a vendor's format."""

    provider: str
    model: str
    family: Model
    system: tuple[str, ...]
    """The system text in parts."""
    messages: Sequence[Message]
    tools: Sequence[ToolDefinition]
    max_output_tokens: int | None
    stream: bool
    window: int
    stable_parts: int = 0
    """How many of the first parts of the system text never change."""
    is_separate: bool = False
    """Whether each part of the system text is a message of its own, where the vendor takes several."""
    cache_key: str = ""
    """What requests share that should meet in one cache; empty where the vendor takes no such key."""
    notes: tuple[str, ...] = ()
    """Each kind of repair that was needed, once."""

    @property
    def system_text(self) -> str:
        """The system text for a vendor that takes only one."""
        return ("\n\n" if self.is_separate else "").join(self.system)

    @property
    def system_texts(self) -> tuple[str, ...]:
        """The texts of the system messages, for a vendor that takes several."""
        return self.system if self.is_separate else (self.system_text,) if self.system else ()

    def signed_data(self, message: Message) -> Mapping[str, Any]:
        """Return what this very model signed in a message. No other model may see it."""
        data = message.provider_data
        is_own = data.get("provider") == self.provider and data.get("model") == self.model
        return data if is_own else {}


class Assembler(ABC):
    """The base of all that put a streamed answer together. A subclass has `add`.

    `answer` grows to what would have come without streaming. `done` is set once it is whole, `error` once the
    vendor reports one on the way.
    """

    def __init__(self) -> None:
        self.done, self.error = False, ""
        self.answer: dict[str, Any] = {}

    def feed(self, event: Mapping[str, Any]) -> str:
        """Take one event. Returns the text that it adds."""
        if event.get("error") or event.get("type") == "error":
            return self.fail(event)
        return self.add(event)

    def fail(self, event: Mapping[str, Any]) -> str:
        error = event.get("error") or event
        message = error.get("message") if isinstance(error, Mapping) else error
        self.error = str(message or "the provider reported an error")
        return ""

    @abstractmethod
    def add(self, event: Mapping[str, Any]) -> str:
        """Take one event that is no error. Returns the text that it adds."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Vendor:
    """One vendor: where and how it is asked, and how its requests, answers and streams are written.

    `{model}` in the path and `{key}` in a header stand for the real ones. The address is overridden by the
    variable `address_variable`. A vendor without a `key_variable` needs no key.
    """

    name: str
    address: str
    address_variable: str
    path: str
    default_model: str
    to_wire: Callable[[WireRequest], dict[str, Any]]
    from_wire: Callable[[Mapping[str, Any]], Reply]
    violations: Callable[[Mapping[str, Any]], list[str]]
    assembler: Callable[[], Assembler]
    key_variable: str = ""
    key_name: str = ""
    """The name below `[keys]`, if it is not the vendor's own."""
    headers: Mapping[str, str] = field(default_factory=dict)
    streams_lines: bool = False
    """Whether a stream is one JSON object per line. It is server-sent events otherwise."""
    models_path: str = "/models"
    """Where the server lists its models."""
    show_path: str = ""
    """Where the server describes one model. A server that has it reads only what each request asks for."""
    tells_windows: bool = False
    """Whether the vendor's own server says how much its models read."""
    takes_cache_key: bool = False
    """Whether a request may name a key that leads it to the cache of its session."""
    models: tuple[Model, ...] = ()
    unknown: Model = Model(start="", ratio=1.2)
    """What is assumed of a model that no row of any vendor names."""
    rule: Rule = Rule()

    def url(self, address: str, model: str) -> str:
        return address + self.path.replace("{model}", quote(model, safe=""))

    def headers_with(self, key: str) -> dict[str, str]:
        """Return the headers of a request. Without a key there is no header for it."""
        headers = self.headers.items()
        return {name: text.replace("{key}", key) for name, text in headers if key or "{key}" not in text}


def picture(part: Mapping[str, Any]) -> tuple[str, str]:
    """Return the media type and the Base64 data of a picture. Another part gives its name and no data."""
    data = part.get("data")
    if part.get("type") == "image" and isinstance(data, str) and data:
        return str(part.get("media_type") or "image/png"), data
    return f"a part of the kind {str(part.get('type') or 'unknown')!r}", ""


def content_parts(
    message: Message,
    text: Callable[[str], dict[str, Any]],
    image: Callable[[str, str], dict[str, Any]],
) -> Iterator[dict[str, Any]]:
    """Write the text and the pictures of a message. A part that cannot be sent is named in a text."""
    if message.content.strip():
        yield text(message.content)
    for part in message.parts:
        media, data = picture(part)
        yield image(media, data) if data else text(left_out(media))


def left_out(media: str) -> str:
    return f"[{media} was left out]"


def text_of(message: Message) -> str:
    """Return a message as text alone. Parts that are no text are named."""
    names = [left_out(picture(part)[0]) for part in message.parts]
    return "\n".join([message.content, *names] if message.content.strip() else names or [message.content])


def arguments_from(value: Any) -> dict[str, Any]:
    """Read the arguments of a call. Broken JSON is kept under `_raw`, so that the model can be told of it."""
    if isinstance(value, Mapping):
        return dict(value)
    try:
        parsed = json.loads(value) if value else {}
    except (ValueError, TypeError, RecursionError):
        return {"_raw": str(value)}
    return parsed if isinstance(parsed, dict) else {"_raw": str(value)}


def usage_of(table: Mapping[str, Any], sent: str, received: str, cached: str, written: str = "") -> Usage:
    """Read the usage by the vendor's names. A dot leads into an inner table; a missing number is 0."""
    counts = []
    for path in (sent, received, cached, written):
        value: Any = table
        for name in path.split("."):
            value = (value or {}).get(name)
        counts.append(int(value or 0))
    names = ("input_tokens", "output_tokens", "cached_tokens", "written_tokens")
    return Usage(**dict(zip(names, counts, strict=True)))
