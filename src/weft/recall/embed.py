"""Embedders: they turn texts into vectors, which are compared by meaning."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Protocol

from weft.errors import StoreError, WeftError

LONGEST = 4000
"""How many characters of a text are embedded: the start of a long one says what it is about."""


class Embedder(Protocol):
    """A model that gives each text a vector; texts of like meaning get vectors of like direction.

    `name` stands for the model and its settings: vectors of different names are never compared. `dimensions`
    may be 0 until it has embedded something.
    """

    @property
    def name(self) -> str: ...

    @property
    def dimensions(self) -> int: ...

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]: ...


async def packed(embedder: Embedder, texts: Sequence[str]) -> list[bytes]:
    """Embed texts, and pack the vectors as a store has them.

    Raises:
        StoreError: the embedder failed, or did not return a vector for each text.
    """
    try:
        vectors = await embedder.embed([text[:LONGEST] for text in texts])
    except WeftError:
        raise
    except Exception as error:  # an embedder is anybody's code
        raise StoreError(
            f"The embedder {embedder.name!r} failed ({type(error).__name__}): choose another one with "
            "`weft recall setup`."
        ) from error
    dimensions = embedder.dimensions
    if dimensions % 8:
        raise StoreError(
            f"The embedder {embedder.name!r} gives vectors of {dimensions} numbers: the store takes "
            "multiples of 8, so pad them with zeros."
        )
    if len(vectors) != len(texts) or any(len(vector) != dimensions for vector in vectors):
        raise StoreError(
            f"The embedder {embedder.name!r} did not give a vector of {dimensions} numbers for each "
            "text: choose another one."
        )
    return [struct.pack(f"<{dimensions}f", *vector) for vector in vectors]
