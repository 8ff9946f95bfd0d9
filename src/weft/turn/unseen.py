"""What is remembered and was not in a turn, although no receipt lists it, and why it was not."""

from __future__ import annotations

from collections.abc import Iterator, Set
from datetime import datetime

from weft.memory.base import Store
from weft.store.base import Scope
from weft.types.memory import BlockInfo, BlockType
from weft.types.search import FactType, MemorySearchResult, SearchContentType, SearchMode, SearchQuery
from weft.types.session import Session, TurnInfo
from weft.types.tokenize import STOP_WORDS, words

_MOST = 10
_TITLE_CHARS = 48
_KINDS = {
    BlockType.ARCHIVAL: "an archival block is never shown: the model can search it",
    BlockType.LOG: "a log is shown only in a turn that names it",
    BlockType.WORKING: "it is not pinned, and this turn did not name it",
}
_NOTE = "a note of the archive is never shown: the model can search it"
_NO_WORD = "it was not recalled: the message has none of its telling words"
_NO_PART = "this turn showed no such part of the memory"
_LESS = "it was not recalled: other lines, or none, bore enough on the message"


async def unseen(
    store: Store, info: TurnInfo, session: Session, text: str
) -> list[tuple[MemorySearchResult, str]]:
    """Find what the person's memory and other conversations have of a text, each with why it was not shown.

    Some of it may have been shown all the same: the receipt knows.
    """
    wanted = text.casefold().strip()
    query = SearchQuery(text=text, mode=SearchMode.FTS, limit=5 * _MOST)
    hits = await store.search(query, Scope(owner=session.agent_id))
    blocks = {block.label: block for block in await store.memory.list_blocks(session.agent_id)}
    asked = _telling(info.text)
    return [
        (hit, _why(hit, info, blocks.get(hit.label), asked))
        for hit in hits
        if wanted in f"{hit.label}\n{hit.content}".casefold() and hit.session_id != info.session_id
    ][:_MOST]


def place_of(hit: MemorySearchResult) -> str:
    """Say what was found: a block, a fact, a note, or a line with its day and speaker."""
    if hit.source == SearchContentType.BLOCKS:
        return f"blocks: {hit.label}"
    if hit.source == FactType.FACTS:
        return f"facts: {hit.label}"
    title = " ".join(hit.content.split())[:_TITLE_CHARS]
    if hit.source == SearchContentType.ARCHIVAL:
        return f"archive: {title}"
    day = f"{hit.at:%Y-%m-%d} " if hit.at else ""
    return f"conversation {hit.session_id[:8]}: {day}{hit.speaker}: {title}"


def _why(hit: MemorySearchResult, info: TurnInfo, block: BlockInfo | None, asked: Set[str]) -> str:
    written = block.updated_at if block is not None else hit.at
    return next(_reasons(hit, info.at, written, block, asked))


def _reasons(
    hit: MemorySearchResult,
    turn_at: datetime | None,
    written: datetime | None,
    block: BlockInfo | None,
    asked: Set[str],
) -> Iterator[str]:
    if turn_at is not None and written is not None and written > turn_at:
        yield f"it is newer than this turn: it was written on {written:%Y-%m-%d at %H:%M}"
    if hit.source == SearchContentType.ARCHIVAL:
        yield _NOTE
    if hit.source == SearchContentType.MESSAGES:
        yield _LESS if asked & _telling(hit.content) else _NO_WORD
    if hit.source == FactType.FACTS and hit.ended_at is not None:
        yield f"it held until {hit.ended_at:%Y-%m-%d at %H:%M}"
    if block is not None and not (block.block_type == BlockType.WORKING and block.pinned):
        yield _KINDS.get(block.block_type, _NO_PART)
    yield _NO_PART


def _telling(text: str) -> set[str]:
    return {word for word in words(text) if word not in STOP_WORDS}
