"""Long-term memory from a file: one entry a line, the ones that bear on the message first."""

from __future__ import annotations

import re
from functools import lru_cache

from weft.recall.rank import Index
from weft.sources.base import Request, nothing, piece, under_title
from weft.tokens import Counter
from weft.types.escape import one_line
from weft.types.recipe import Layer
from weft.types.section import Offer, Origin, Stability, Withheld

_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_HEADING = re.compile(r"#{1,6}(?:\s|\Z)")


async def offer(request: Request, layer: Layer) -> Offer:
    """Entries ranked by relevance, ties newest first, up to the recipe's limit."""
    files = await request.read(layer, layer.path)
    file = files[0] if files else None
    if file is None:
        return nothing(layer)
    warnings = (file.warning,) if file.warning else ()
    found, prices, index = _prepared(file.text or "", request.counter)
    scores = index.relevance(request.message)
    ranked = sorted(range(len(found)), key=lambda n: (-scores[n], -n))
    limit = len(ranked) if layer.max_entries is None else layer.max_entries
    pieces = [
        piece(
            layer,
            found[n],
            title=_title(found[n]),
            why="ranked by relevance to the message",
            stability=Stability.TURN,
            origin=Origin.USER,
        )
        for n in ranked[:limit]
    ]
    withheld: tuple[Withheld, ...] = ()
    if rest := ranked[limit:]:
        cost = sum(prices[n] for n in rest)
        reason = f"less relevant than the {limit} shown (`max_entries`)"
        withheld = (Withheld(title=f"{len(rest)} entries", tokens=cost, reason=reason, count=len(rest)),)
    return under_title(layer, pieces, warnings=warnings, withheld=withheld)


@lru_cache(maxsize=4)
def _prepared(text: str, counter: Counter) -> tuple[list[str], list[int], Index]:
    """The entries of a file, their prices and their words, worked out once while it stays the same."""
    found = entries(text)
    return found, [counter.text(entry) for entry in found], Index(found)


def entries(text: str) -> list[str]:
    """The lines of a memory file that remember something; an indented line belongs to the one above.

    Headings, rules and comments are not entries.
    """
    found: list[str] = []
    may_go_on = False
    for line in _COMMENT.sub("", text).splitlines():
        bare = line.strip()
        if _HEADING.match(bare) or not bare.strip("-*_= "):
            may_go_on = may_go_on and not bare
        elif may_go_on and line[0].isspace():
            found[-1] += "\n" + line.rstrip()
        else:
            found.append(bare)
            may_go_on = True
    return found


def _title(entry: str) -> str:
    line = one_line(entry).lstrip("-* ")
    return line if len(line) <= 48 else line[:47] + "…"
