"""A memo of what was made from objects that stay the same from turn to turn, such as tools."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")
_MOST = 1024


class Memo(Generic[K, V]):
    """What `make` returns for an object, made once for as long as that very object is offered again.

    It goes by identity, since a tool's schema cannot be hashed. An object that is in the memo stays alive, so
    no other object can get its identity. What was made must not be changed by those who get it.
    """

    def __init__(self, make: Callable[[K], V]) -> None:
        self._make = make
        self._made: dict[int, tuple[K, V]] = {}

    def __call__(self, key: K) -> V:
        made = self._made.get(id(key))
        if made is None:
            if len(self._made) >= _MOST:
                self._made.clear()
            made = self._made[id(key)] = (key, self._make(key))
        return made[1]

    def __contains__(self, key: K) -> bool:
        return id(key) in self._made
