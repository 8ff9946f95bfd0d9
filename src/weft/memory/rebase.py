"""Rebasing a change of a text onto what the text has become. Pure.

How a text changed is a list of steps from its start to its end: a number says how many characters stay, a
negative one how many go, and a text is what comes. What follows the last step stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher

from weft.memory.diff import splice

Step = int | str
_MOST_LINES = 1000


def apply_steps(text: str, steps: Sequence[Step]) -> str:
    """Change a text by these steps."""
    parts, at = list[str](), 0
    for step in steps:
        if isinstance(step, str):
            parts.append(step)
            continue
        if step > 0:
            parts.append(text[at : at + step])
        at += abs(step)
    return "".join([*parts, text[at:]])


def rebase(old: str, new: str, steps: Sequence[Step]) -> str:
    """Merge one writer's change of `old` into `new` with the steps that others took from `old`.

    A text that either side removed is gone. A text that either side added stands where it was put, the
    others' before the writer's.
    """
    added, gone = _placed(steps)
    own_added, own_gone = _placed(steps_between(old, new))
    borders = {0, len(old), *added, *own_added}
    for start, end in [*gone, *own_gone]:
        borders |= {start, end}
    places = sorted(place for place in borders if place <= len(old))
    parts = list[str]()
    for place, following in zip(places, [*places[1:], len(old)], strict=True):
        parts += [added.get(place, ""), own_added.get(place, "")]
        if not any(start <= place < end for start, end in [*gone, *own_gone]):
            parts.append(old[place:following])
    return "".join(parts)


def steps_between(old: str, new: str) -> list[Step]:
    """Return the steps from one text to another: line by line unless they are very long."""
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    if max(len(before), len(after)) > _MOST_LINES:
        start, removed, added = splice(old, new)
        return [start, -removed, str(added)]
    steps = list[Step]()
    for kind, i, j, k, m in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        was = "".join(before[i:j])
        if kind == "equal":
            steps.append(len(was))
            continue
        became = "".join(after[k:m])
        start, removed, added = splice(was, became)
        steps += [start, -removed, str(added), len(was) - start - removed]
    return steps


def _placed(steps: Sequence[Step]) -> tuple[dict[int, str], list[tuple[int, int]]]:
    """Return the added texts by their offset in the old text, and the removed ranges of it."""
    added, gone, at = dict[int, str](), list[tuple[int, int]](), 0
    for step in steps:
        if isinstance(step, str):
            added[at] = added.get(at, "") + step
            continue
        if step < 0:
            gone.append((at, at - step))
        at += abs(step)
    return added, gone
