"""Places of cache marks in a request, chosen from the positions of its content blocks alone.

A vendor caches a request up to each mark. The next request reads as far as one of its own marks, or up to
`LOOK_BACK` blocks before one, meets the end of what was cached.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

MOST_MARKS = 4
"""The number of marks that vendors take in one request."""
LOOK_BACK = 20
"""How many blocks before a mark a vendor looks for an earlier one."""
STRIDE = 15
"""The distance between two marks in a long round of tools, with some room below `LOOK_BACK`."""
KEYS = ("cache_control", "prompt_cache_breakpoint")
"""The fields that hold a mark, in any vendor's format."""


class Block(NamedTuple):
    """One content block of the messages, as far as a mark depends on it."""

    is_assistant: bool
    takes_mark: bool


def places(system: int, stable: int, blocks: Sequence[Block]) -> list[int]:
    """Choose which blocks of a request are marked.

    Blocks are counted from the first one of the system text, which has `system` of them; the first `stable`
    of those never change. The places are the end of these, the end of the system text, the end of the request
    before this one (the last block before the newest answer), and the end of all. Where a round of tools lies
    between the last two, more marks lead back from the end. There are at most four: the mark behind the
    stable part gives way first, then that of the request before, if a further mark is near enough to find it.
    """
    heads = [] if not system else [system - 1] if not 0 < stable < system else [stable - 1, system - 1]
    asked = _turns(blocks)[::-2][:2][::-1]
    ends = [end for turn in asked if (end := _last_markable(blocks, *turn)) is not None]
    if not ends:
        return heads
    between = _between(blocks, ends[0], ends[-1])
    if len(between) == 2 and between[0] - ends[0] <= LOOK_BACK:
        ends = ends[1:]
    else:
        between = between[-1:]  # what is further away is found by a mark of its own alone
    in_messages = [at + system for at in sorted({*ends, *between})]
    room = MOST_MARKS - len(in_messages)
    return heads[max(len(heads) - room, 0) :] + in_messages


def _turns(blocks: Sequence[Block]) -> list[tuple[int, int]]:
    """Return the stretches of blocks of one side, each from its first block to the one after its last."""
    if not blocks:
        return []
    changes = [at for at, (a, b) in enumerate(pairwise(blocks), start=1) if a.is_assistant != b.is_assistant]
    return list(pairwise([0, *changes, len(blocks)]))


def _last_markable(blocks: Sequence[Block], first: int, end: int) -> int | None:
    return next((at for at in range(end - 1, first - 1, -1) if blocks[at].takes_mark), None)


def _between(blocks: Sequence[Block], first: int, last: int) -> list[int]:
    """Return places that lead back from the last mark until the first one is near enough to be found."""
    between = list[int]()
    at = last
    while at - first > LOOK_BACK:
        near = [place for place in range(at - LOOK_BACK, at) if blocks[place].takes_mark]
        if not near:
            break  # a run of blocks that take no mark
        wanted = at - STRIDE
        at = min((abs(place - wanted), place) for place in near)[1]
        between.insert(0, at)
    return between


def count_marks(blocks: Sequence[Any]) -> int:
    """Return how many of these blocks are marked."""
    return sum(isinstance(block, dict) and any(key in block for key in KEYS) for block in blocks)
