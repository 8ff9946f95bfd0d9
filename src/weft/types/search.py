"""Search options, candidates and results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """A line of a conversation that bears on this message. `id` is that of the logged message.

    `place` is its number among the lines of its session, `episode` that of the stretch without a pause in
    which it stands. `score` orders the lines of one query, and `reasons` are its parts; `relevance` is from 0
    to 1.
    """

    text: str
    speaker: str
    id: str = ""
    origin: str = "user"
    timestamp: datetime | None = None
    score: float = 0.0
    relevance: float = 1.0
    session_id: str = ""
    place: int = 0
    episode: int = 0
    reasons: Mapping[str, float] = field(default_factory=dict)


class SearchMode(StrEnum):
    """How a search works: by words, by meaning, by both, or by both where there is an embedder."""

    FTS = "fts"
    VECTOR = "vector"
    HYBRID = "hybrid"
    AUTO = "auto"


class SearchContentType(StrEnum):
    """The kinds of things that are searched."""

    MESSAGES = "message"
    BLOCKS = "block"
    ARCHIVAL = "archival"


class FactType(StrEnum):
    """Facts as a kind of hit. They are no texts of the index, so a search by meaning does not cover them."""

    FACTS = "fact"


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions:
    """The mode of a search, the kinds of things that it covers, and the number of hits."""

    mode: SearchMode = SearchMode.AUTO
    content_types: tuple[SearchContentType, ...] = (
        SearchContentType.MESSAGES,
        SearchContentType.BLOCKS,
        SearchContentType.ARCHIVAL,
    )
    limit: int = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A possible hit before ranking. `words` and `meaning` say how well it matches by each.

    `speaker` is the role of who said a message, `name` their name, and `place` its number among the lines of
    its session. `label` is that of a block, or the key of a fact; `owner` is whose it is. A fact that is no
    longer true has `ended_at`.
    """

    source: SearchContentType | FactType
    id: str
    content: str
    words: float = 0.0
    meaning: float | None = None
    at: datetime | None = None
    speaker: str = ""
    origin: str = ""
    outside: tuple[str, ...] | None = None
    session_id: str = ""
    name: str = ""
    place: int = 0
    label: str = ""
    owner: str = ""
    ended_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NearLine:
    """A line of the conversation around a hit."""

    id: str
    content: str
    speaker: str
    at: datetime | None = None
    is_hit: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySearchResult:
    """One hit. Larger scores are better; `parts` are the parts of the score, `mode` is how it was found.

    A message has the time `at` which it was said, its session, its `place` among the lines of that, and its
    speaker: a name, or a role. `reasons` are what counted, by groups; negative ones counted against it.
    """

    source: SearchContentType | FactType
    id: str
    content: str
    snippet: str
    score: float
    parts: Mapping[str, float] = field(default_factory=dict)
    mode: SearchMode = SearchMode.FTS
    at: datetime | None = None
    session_id: str = ""
    place: int = 0
    speaker: str = ""
    label: str = ""
    owner: str = ""
    ended_at: datetime | None = None
    reasons: Mapping[str, float] = field(default_factory=dict)
    around: tuple[NearLine, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchFilter:
    """What a search is limited to: a span of time in seconds since 1970, and who said it.

    `until` is the first moment that is too late. `role` and `speaker` (a name) are those of a message,
    `senders` (`CHANNEL:ID`) are those whose conversations are searched; all that are set must fit.
    """

    since: float | None = None
    until: float | None = None
    role: str = ""
    speaker: str = ""
    senders: tuple[str, ...] | None = None

    @property
    def is_set(self) -> bool:
        return self != SearchFilter()

    @property
    def names_speaker(self) -> bool:
        return bool(self.role or self.speaker) or self.senders is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchQuery:
    """What to search for, in which mode, among which kinds of things, and how many hits to return.

    With `around`, each message comes with so many lines of its conversation on either side.
    """

    text: str
    mode: SearchMode = SearchMode.AUTO
    sources: tuple[SearchContentType | FactType, ...] = (*SearchContentType, *FactType)
    limit: int = 10
    around: int = 0
