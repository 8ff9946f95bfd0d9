"""Notifications of changes of a block."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockChanged:
    """A change of a block's document, and its cause: an edit of this process, or updates of others."""

    label: str
    triggered_by: Literal["local", "import", "checkout"]


class Subscription:
    """What `subscribe_root` returns. It lasts until `unsubscribe`, even if nobody refers to it."""

    def __init__(
        self, callbacks: list[Callable[[BlockChanged], object]], callback: Callable[[BlockChanged], object]
    ) -> None:
        self._callbacks, self._callback = callbacks, callback

    def unsubscribe(self) -> None:
        """Stop the notifications. A second call does nothing."""
        self._callbacks[:] = [other for other in self._callbacks if other is not self._callback]
