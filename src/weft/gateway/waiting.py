"""Waiting for work, unless something else comes first."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def unless(ending: Coroutine[Any, Any, object], work: Coroutine[Any, Any, T]) -> asyncio.Task[T] | None:
    """Do some work. Returns its finished task, or None if `ending` came first and the work was cancelled."""
    working, stopping = asyncio.create_task(work), asyncio.create_task(ending)
    try:
        await asyncio.wait((working, stopping), return_when=asyncio.FIRST_COMPLETED)
        return working if working.done() else None
    finally:
        working.cancel()
        stopping.cancel()
        await asyncio.wait((working, stopping))


async def pause(stopped: asyncio.Event, seconds: float) -> None:
    """Wait for some seconds, or until `stopped`."""
    try:
        async with asyncio.timeout(seconds):
            await stopped.wait()
    except TimeoutError:
        return
