"""An embedder that needs no network: word vectors of 19 MB, thousands of texts a second on one core."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from importlib import util
from pathlib import Path
from typing import Any

from weft.errors import ConfigError

INSTALL = "pip install 'weft[meaning]'"


class WordLlamaEmbedder:
    """The embedder `wordllama`. Its model is loaded when it is first used."""

    name, dimensions = "wordllama-256", 256

    def __init__(self) -> None:
        if util.find_spec("wordllama") is None:
            raise ConfigError(f"The embedder wordllama is not installed: `{INSTALL}` installs it.")
        self._model: Any = None
        self._lock = asyncio.Lock()

    async def embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
        async with self._lock:
            if self._model is None:
                self._model = await asyncio.to_thread(_load)
            vectors = await asyncio.to_thread(self._model.embed, [text or " " for text in texts])
        return [vector.tolist() for vector in vectors]


def _load() -> Any:
    """Load the model from the weights inside the package; nothing is downloaded."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    import wordllama  # noqa: PLC0415 - half a second, and most runs do not need it

    # The package turns on logging for the whole program when it is imported: take that back.
    root.handlers[:] = handlers
    root.setLevel(level)
    folder = Path(wordllama.__file__).parent
    return wordllama.WordLlama.load(cache_dir=folder, disable_download=True)
