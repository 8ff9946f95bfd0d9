"""Where two texts or lists differ. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any


def splice(old: Sequence[Any], new: Sequence[Any]) -> tuple[int, int, Sequence[Any]]:
    """Return the one stretch in which the two differ: its start, how much is removed, what is added.

    Slices are compared, because a character-wise difference of unrelated texts takes seconds.
    """
    if isinstance(old, str):
        start, end = _common(old, new)
    else:
        # 1, 1.0 and True are equal in Python, and not the same item.
        start, end = _common([_exact(item) for item in old], [_exact(item) for item in new])
    return start, len(old) - end - start, new[start : len(new) - end]


def _common(old: Sequence[Any], new: Sequence[Any]) -> tuple[int, int]:
    """Count how much the two share at the start, and of the rest at the end."""
    start, most = 0, min(len(old), len(new))
    while start < most:
        middle = (start + most + 1) // 2
        if old[start:middle] == new[start:middle]:
            start = middle
        else:
            most = middle - 1
    end, most = 0, min(len(old), len(new)) - start
    while end < most:
        middle = (end + most + 1) // 2
        if old[len(old) - middle : len(old) - end] == new[len(new) - middle : len(new) - end]:
            end = middle
        else:
            most = middle - 1
    return start, end


def _exact(item: Any) -> str:
    return json.dumps(item, sort_keys=True)
