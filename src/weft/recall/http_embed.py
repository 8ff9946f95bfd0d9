"""Embedders behind an address: Ollama, and everything that speaks OpenAI's protocol."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import httpx

from weft.errors import StoreError

_SECONDS = 60.0
_LIST_SECONDS = 2.0
_MOST_ERROR = 200
_WRONG = (TypeError, AttributeError)
"""What an answer of another shape raises."""
_EMBEDS = re.compile(r"embed|minilm|\bbge|\bgte|\be5\b|paraphrase", re.IGNORECASE)


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
        if len(vectors) != len(texts) or len({len(vector) for vector in vectors}) > 1 or [] in vectors:
            raise StoreError(
                f"The embedder at {self._url} did not answer with a vector for each text: is {self._model!r} "
                "a model for embeddings?"
            )
        padded = [_padded(vector) for vector in vectors]
        self.dimensions = len(padded[0]) if padded else self.dimensions
        return padded

    def _vectors(self, answer: httpx.Response) -> list[list[float]]:
        try:
            data: Any = answer.json()
            if self._kind == "ollama":
                rows = data["embeddings"]
            else:
                rows = [one["embedding"] for one in sorted(data["data"], key=lambda one: one.get("index", 0))]
            return [[float(number) for number in row] for row in rows]
        except (LookupError, ValueError, *_WRONG):
            return []


def _padded(vector: list[float]) -> Sequence[float]:
    return vector + [0.0] * (-len(vector) % 8)


async def list_embedding_models(url: str) -> list[str] | None:
    """Return the models of an Ollama that look like embedding models; None if it does not answer."""
    try:
        async with httpx.AsyncClient(timeout=_LIST_SECONDS) as client:
            answer = await client.get(f"{url.rstrip('/')}/api/tags")
        rows: Any = answer.json()["models"] if answer.is_success else None
        names = [str(row.get("name") or "") for row in rows if _embeds(row)] if rows is not None else None
    except (httpx.HTTPError, httpx.InvalidURL, ExceptionGroup, LookupError, ValueError, *_WRONG):
        return None
    return names if names is None else [name for name in names if name]


def _embeds(row: Any) -> bool:
    details = row.get("details")
    family = details.get("family") if isinstance(details, dict) else ""
    return "bert" in str(family or "") or _EMBEDS.search(str(row.get("name") or "")) is not None
