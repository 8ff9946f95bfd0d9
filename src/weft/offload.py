"""Work that grows with its input, done in a thread so that the event loop goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

SMALL = 32 * 1024
"""Up to so many characters or bytes the way to a thread costs more than the work itself."""


async def offloaded(size: int, work: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
    """Run work whose time grows with the size of its input: a small one here, a large one in a thread.

    A thread helps only between two steps of Python: a single call of a library that is written in C stops
    the loop from any thread, so `work` takes a long text in slices.
    """
    if size <= SMALL:
        return work(*args, **options)
    return await asyncio.to_thread(work, *args, **options)
