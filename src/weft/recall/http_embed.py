"""Embedders behind an address: Ollama, and everything that speaks OpenAI's protocol."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import httpx

from weft.errors import StoreError

_SECONDS = 60.0
_MOST_ERROR = 200


class HttpEmbedder:
    """The embedding model of a server. Servers of both kinds take `input` as a list of texts.

    How long its vectors are is known once it has answered; a length that is no multiple of 8 is filled up
    with zeros, which changes no angle between vectors.
    """

    def __init__(self, *, kind: str, url: str, model: str, key: str = "") -> None:
        self.name = f"{kind}:{model}@{url}"
        self.dimensions = 0
        self._model, self._kind, self._key = model, kind, key
        self._url = f"{url.rstrip('/')}{'/api/embed' if kind == 'ollama' else '/embeddings'}"

    async def embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
        """Embed texts.

        Raises:
            StoreError: the server cannot be reached, refuses, or answers with something else.
        """
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        body = {"model": self._model, "input": [text or " " for text in texts]}
        try:
            async with httpx.AsyncClient(timeout=_SECONDS) as client:
                answer = await client.post(self._url, json=body, headers=headers)
        except httpx.HTTPError as error:
            raise StoreError(
                f"The embedder at {self._url} cannot be reached ({type(error).__name__}): start its server, "
                "or choose another one with `weft recall setup`."
            ) from error
        if answer.is_error:
            said = " ".join(answer.text.split())[:_MOST_ERROR]
            raise StoreError(
                f"The embedder at {self._url} refused with {answer.status_code}: {said}. "
                "`weft recall setup` chooses another model."
            )
        vectors = self._vectors(answer)
        if len(vectors) != len(texts) or len({len(vector) for vector in vectors}) > 1:
            raise StoreError(
                f"The embedder at {self._url} did not answer with a vector for each text: is {self._model!r} "
                "a model for embeddings?"
            )
        self.dimensions = len(vectors[0]) if vectors else self.dimensions
        return vectors

    def _vectors(self, answer: httpx.Response) -> list[Sequence[float]]:
        try:
            data: Any = answer.json()
            if self._kind == "ollama":
                rows = data["embeddings"]
            else:
                rows = [one["embedding"] for one in sorted(data["data"], key=lambda one: one.get("index", 0))]
            return [_padded([float(number) for number in row]) for row in rows]
        except (ValueError, KeyError, TypeError, AttributeError):
            return []


def _padded(vector: list[float]) -> list[float]:
    return vector + [0.0] * (-len(vector) % 8)
