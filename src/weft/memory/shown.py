"""What each task last read of a block, so that a whole new text can be understood as a change of that.

Programs read a text, think for a minute, and write the whole of it back. Taken literally, that erases what
others wrote in that minute. Taken as a change of what was read, nothing is lost.
"""

from __future__ import annotations

import asyncio
from typing import Any
from weakref import WeakKeyDictionary

from weft.memory.cache import LoadedBlock


class Shown:
    """The state of blocks as tasks were last shown them, until they write."""

    def __init__(self) -> None:
        self._of_tasks: WeakKeyDictionary[asyncio.Task[Any], dict[str, bytes]] = WeakKeyDictionary()

    def note(self, held: LoadedBlock) -> None:
        """The running task has now seen this block as it is."""
        task = asyncio.current_task()
        if task is not None:
            self._of_tasks.setdefault(task, {})[held.block_id] = held.doc.frontiers()

    def taken(self, held: LoadedBlock) -> bytes | None:
        """The state the running task last saw, if it did not write since. It is forgotten hereby."""
        task = asyncio.current_task()
        return None if task is None else self._of_tasks.get(task, {}).pop(held.block_id, None)
