"""Being told when a block changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockChanged:
    """That a block's document changed, and through whom: an edit here, or updates from elsewhere."""

    label: str
    triggered_by: Literal["local", "import", "checkout"]


class Subscription:
    """What `subscribe_root` returns. Letting go of it changes nothing; `unsubscribe` does."""

    def __init__(
        self, callbacks: list[Callable[[BlockChanged], object]], callback: Callable[[BlockChanged], object]
    ) -> None:
        self._callbacks, self._callback = callbacks, callback

    def unsubscribe(self) -> None:
        """Be told nothing more. Doing it twice does no harm."""
        self._callbacks[:] = [other for other in self._callbacks if other is not self._callback]
