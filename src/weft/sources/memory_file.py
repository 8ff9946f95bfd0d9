"""Long-term memory from a file: one entry a line, the ones that bear on the message first."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from weft.recall.rank import Index
from weft.sources.base import BuildRequest, Options, entries_beyond, pieces
from weft.tokens import Counter
from weft.types.escape import one_line
from weft.types.recipe import Reload
from weft.types.section import Offer, Origin, Stability

_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_HEADING = re.compile(r"#{1,6}(?:\s|\Z)")


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryFileOptions(Options):
    path: str = ""
    max_entries: int | None = None
    reload: Reload | None = None


async def offer(request: BuildRequest, options: MemoryFileOptions) -> Offer:
    """Offer entries ranked by relevance, ties newest first, up to `max_entries`."""
    files = await request.read(options.path, reload=options.reload)
    if not files:
        return Offer()
    (file,) = files
    entries, prices, index = _prepared(file.text or "", request.counter)
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
        warnings=(file.warning,) if file.warning else (),
        withheld=entries_beyond(beyond, [prices[n] for n in ranked[limit:]]),
    )


@lru_cache(maxsize=4)
def _prepared(text: str, counter: Counter) -> tuple[list[str], list[int], Index]:
    """Return the entries of a file, their prices and their words. Cached while the file is the same."""
    entries = entries_of(text)
    return entries, [counter.text(entry) for entry in entries], Index(entries)


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
