"""A change of a text, carried over to what the text has become. Pure.

How a text changed is a list of steps from its start to its end: a number says how many characters stay, a
negative one how many go, and a text is what comes. What follows the last step stays.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.memory.items import splice

Step = int | str


def stepped(text: str, steps: Sequence[Step]) -> str:
    """The text after the steps."""
    parts, at = list[str](), 0
    for step in steps:
        if isinstance(step, str):
            parts.append(step)
            continue
        if step > 0:
            parts.append(text[at : at + step])
        at += abs(step)
    return "".join([*parts, text[at:]])


def carry(old: str, new: str, steps: Sequence[Step]) -> str:
    """What becomes of `old` if one writer makes `new` of it and others take the steps.

    What the writer removed goes, unless it came with the steps; what they added comes where they put it,
    behind what the others put at the same place.
    """
    start, removed, added = splice(old, new)
    parts, at, put = list[str](), 0, False
    for step in [*steps, len(old)]:
        if isinstance(step, str):
            parts.append(step)
            continue
        end = min(at + abs(step), len(old))
        if not put and end > start:
            parts += [old[at:start]] * (step > 0) + [str(added)]
            put, at = True, at if step < 0 else max(at, start)
        if step > 0:
            parts.append(_without(old, at, end, start, start + removed))
        at = end
    return "".join(parts if put else [*parts, str(added)])


def _without(old: str, at: int, end: int, start: int, stop: int) -> str:
    """The characters from `at` to `end`, but for those from `start` to `stop`."""
    return old[at : min(end, max(at, start))] + old[max(at, min(end, stop)) : end]
