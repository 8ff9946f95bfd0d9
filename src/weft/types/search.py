"""Search options, candidates and results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """A line of another conversation that bears on this message."""

    text: str
    speaker: str
    timestamp: datetime | None = None
    score: float = 0.0


class SearchMode(StrEnum):
    """How a search looks: by words, by meaning, by both, or by what is there."""

    FTS = "fts"
    VECTOR = "vector"
    HYBRID = "hybrid"
    AUTO = "auto"


class SearchContentType(StrEnum):
    """What a search looks at."""

    MESSAGES = "message"
    BLOCKS = "block"
    ARCHIVAL = "archival"


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions:
    """How, where and how much to search."""

    mode: SearchMode = SearchMode.AUTO
    content_types: tuple[SearchContentType, ...] = (
        SearchContentType.MESSAGES,
        SearchContentType.BLOCKS,
        SearchContentType.ARCHIVAL,
    )
    limit: int = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """Something the store found, before it is ranked: where it is from, and how well its words match."""

    source: SearchContentType
    id: str
    content: str
    words: float = 0.0
    meaning: float | None = None
    at: datetime | None = None
    speaker: str = ""
    session_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySearchResult:
    """One hit. Larger scores are better; `parts` says what the score is made of, `mode` how it was found."""

    source: SearchContentType
    id: str
    content: str
    snippet: str
    score: float
    parts: Mapping[str, float] = field(default_factory=dict)
    mode: SearchMode = SearchMode.FTS
