"""Settings of streams: what they watch, how often, and who gets their notices."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import isfinite
from urllib.parse import urlsplit

from weft.errors import ConfigError

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
_FOLDER_SECONDS, _FEED_SECONDS = 60.0, 900.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSettings:
    """A folder or a feed that is watched, and the person who gets its notices.

    `blocks` are labels of further memory blocks that are shown with a notice. The address of a feed may
    hold a key, so it is never printed whole.
    """

    name: str
    channel: str
    conversation: str
    sender: str
    folder: str | None = None
    feed: str | None = field(default=None, repr=False)
    pattern: str | None = None
    every_seconds: float | None = None
    blocks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if problem := _problem(self):
            raise ConfigError(f"The stream {self.name!r} {problem}")

    @property
    def seconds(self) -> float:
        """The time between two looks."""
        return self.every_seconds or (_FOLDER_SECONDS if self.folder else _FEED_SECONDS)

    @property
    def place(self) -> str:
        """What is watched, in words that may be printed."""
        if self.folder:
            return (
                f"the folder {self.folder} ({self.pattern})" if self.pattern else f"the folder {self.folder}"
            )
        address = urlsplit(self.feed or "")
        return f"the feed {address.scheme}://{address.netloc.rpartition('@')[2]}{address.path}"


def refuse_same_names(streams: Sequence[StreamSettings]) -> None:
    """Refuse two streams of one name, since they would share what they have seen.

    Raises:
        ConfigError: two streams have the same name.
    """
    names = [stream.name for stream in streams]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"There are two streams {name!r}: give each a name of its own.")


def _problem(stream: StreamSettings) -> str:
    """Return what is wrong with a stream and what to do; an empty text if nothing is."""
    if not _NAME.fullmatch(stream.name):
        return "needs another name: take up to 40 of a-z, 0-9, `-` and `_`, such as 'notes'."
    if bool(stream.folder) == bool(stream.feed):
        both = "has both a folder and a feed" if stream.folder else "has neither a folder nor a feed"
        return f"{both}: give it exactly one of `folder` and `feed`."
    for key in ("channel", "conversation", "sender"):
        if not getattr(stream, key).strip():
            return f"does not say whom to tell: give its `{key}`."
    every = stream.every_seconds
    if every is not None and not (isfinite(every) and every >= 1):
        return "cannot look so often: give `every_seconds` as a number from 1 up."
    return _problem_of_feed(stream) if stream.feed else _problem_of_pattern(stream.pattern)


def _problem_of_feed(stream: StreamSettings) -> str:
    if stream.pattern is not None:
        return "is a feed and has no files to choose from: leave `pattern` out."
    try:
        address = urlsplit(stream.feed or "")
        known = address.scheme in ("http", "https") and bool(address.hostname) and address.port != 0
    except ValueError:
        known = False
    return "" if known else "needs a feed that begins with http:// or https://: give its whole address."


def _problem_of_pattern(pattern: str | None) -> str:
    if pattern is not None and (not pattern or "/" in pattern):
        return "looks at files right in its folder: give a `pattern` for their names, such as '*.md'."
    return ""
