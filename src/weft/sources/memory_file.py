"""Long-term memory from a file: one entry a line, the ones that bear on the message first."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from weft.recall.pieces import best_entries
from weft.recall.rank import Index
from weft.sources.base import BuildRequest, Options, entries_beyond, pieces
from weft.tokens import Counter
from weft.types.epoch import digest_of
from weft.types.escape import one_line
from weft.types.recipe import Reload
from weft.types.section import Offer, Origin, Stability, Withheld
from weft.workspace.files import PIECES_BYTES, FileAt, file_at, read_pieces, size_of

_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_MOST_ENTRIES = 1000
"""The most entries that a large file offers where the recipe sets no limit."""
_HEADING = re.compile(r"#{1,6}(?:\s|\Z)")


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryFileOptions(Options):
    path: str = ""
    owner_only: bool = False
    max_entries: int | None = None
    reload: Reload | None = None


async def offer(request: BuildRequest, options: MemoryFileOptions) -> Offer:
    """Offer entries ranked by relevance, ties newest first, up to `max_entries`.

    What is `owner_only` is the owner's own memory, and shown in their own conversations only.
    """
    workspace = request.files.workspace
    if workspace is None or (options.owner_only and not request.is_for_owner):
        return Offer()
    place = file_at(workspace, options.path)
    if size_of(place) > PIECES_BYTES:
        return await asyncio.to_thread(_offer_in_pieces, request, options, place)
    (file,) = await request.read(options.path, reload=options.reload)
    entries, prices, index, digests = _prepared(file.text or "", request.counter)
    scores = index.relevance(request.message)
    ranked = sorted(range(len(entries)), key=lambda n: (-scores[n], -n))
    limit = len(ranked) if options.max_entries is None else options.max_entries
    texts = [(entries[n], _title(entries[n])) for n in ranked[:limit]]
    why, beyond = (
        "ranked by relevance to the message",
        f"less relevant than the {limit} shown (`max_entries`)",
    )
    return Offer(
        pieces=pieces(texts, why=why, stability=Stability.TURN, origin=Origin.USER),
        existing=digests,
        warnings=(file.warning,) if file.warning else (),
        files=int(file.text is not None),
        withheld=entries_beyond(beyond, [prices[n] for n in ranked[limit:]]),
    )


def _offer_in_pieces(request: BuildRequest, options: MemoryFileOptions, place: FileAt) -> Offer:
    """Offer the best entries of a large file, read and ranked in pieces. The rest is priced by its length."""

    def pieces_of_file() -> Iterator[list[str]]:
        return map(entries_of, read_pieces(place))

    limit = _MOST_ENTRIES if options.max_entries is None else options.max_entries
    try:
        best = best_entries(pieces_of_file, request.message, limit)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        warning = f"{place.path} could not be read ({reason.lower()}) and was left out."
        return Offer(warnings=(warning,))
    texts = [(entry, _title(entry)) for entry in best.entries]
    others, chars = best.count - len(texts), best.chars - sum(map(len, best.entries))
    beyond = f"less relevant than the {len(texts)} shown (`max_entries`); about so many tokens"
    withheld = (Withheld(title=f"{others} entries", tokens=chars // 4, reason=beyond, count=others),)
    return Offer(
        pieces=pieces(
            texts, why="ranked by relevance to the message", stability=Stability.TURN, origin=Origin.USER
        ),
        warnings=(f"{place.path} is large: it was read and ranked in pieces.",),
        files=1,
        withheld=withheld if others else (),
    )


@lru_cache(maxsize=4)
def _prepared(text: str, counter: Counter) -> tuple[list[str], list[int], Index, frozenset[str]]:
    """Return the entries of a file, their prices, words and hashes. Cached while the file is the same."""
    entries = entries_of(text)
    prices, digests = [counter.text(entry) for entry in entries], frozenset(map(digest_of, entries))
    return entries, prices, Index(entries), digests


def entries_of(text: str) -> list[str]:
    """Split a memory file into its entries; an indented line belongs to the one above.

    Headings, rules and comments are not entries.
    """
    entries: list[str] = []
    may_continue = False
    for line in _COMMENT.sub("", text).splitlines():
        bare = line.strip()
        if _HEADING.match(bare) or not bare.strip("-*_= "):
            may_continue = may_continue and not bare
        elif may_continue and line[0].isspace():
            entries[-1] += "\n" + line.rstrip()
        else:
            entries.append(bare)
            may_continue = True
    return entries


def _title(entry: str) -> str:
    line = one_line(entry).lstrip("-* ")
    return line if len(line) <= 48 else line[:47] + "…"
