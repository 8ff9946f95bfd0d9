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
    """A possible hit before ranking. `words` and `meaning` say how well it matches by each."""

    source: SearchContentType
    id: str
    content: str
    words: float = 0.0
    meaning: float | None = None
    at: datetime | None = None
    speaker: str = ""
    origin: str = ""
    outside: tuple[str, ...] | None = None
    session_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySearchResult:
    """One hit. Larger scores are better; `parts` are the parts of the score, `mode` is how it was found.

    A message has the time `at` which it was said, and its session.
    """

    source: SearchContentType
    id: str
    content: str
    snippet: str
    score: float
    parts: Mapping[str, float] = field(default_factory=dict)
    mode: SearchMode = SearchMode.FTS
    at: datetime | None = None
    session_id: str = ""
