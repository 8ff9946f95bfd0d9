"""Embedders behind an address, asked over a real connection."""

import pytest

from embedding_server import EmbeddingServer, vector_of
from weft.errors import StoreError
from weft.recall.embed import packed
from weft.recall.http_embed import HttpEmbedder, list_embedding_models


def embedder(server: EmbeddingServer, kind: str = "ollama", key: str = "") -> HttpEmbedder:
    url = server.url if kind == "ollama" else f"{server.url}/v1/"
    return HttpEmbedder(kind=kind, url=url, model="nomic", key=key)


@pytest.mark.parametrize("kind", ["ollama", "openai"])
async def test_both_protocols_give_each_text_its_own_vector(kind: str) -> None:
    with EmbeddingServer(length=8) as server:
        vectors = await embedder(server, kind, key="k1").embed(["a boat", "some tea", ""])

    assert vectors[:2] == [vector_of("a boat", 8), vector_of("some tea", 8)]
    assert server.texts == ["a boat", "some tea", " "]
    assert server.keys == ["Bearer k1"]


async def test_vectors_of_any_length_are_filled_up_to_a_multiple_of_eight() -> None:
    with EmbeddingServer(length=5) as server:
        one = embedder(server)
        (vector,) = await packed(one, ["a boat"])

    assert (one.dimensions, len(vector)) == (8, 32)


@pytest.mark.parametrize(
    ("failure", "sentence"),
    [
        ("500", "refused with 500"),
        ("shape", "did not answer with a vector for each text"),
        ("lengths", "did not answer with a vector for each text"),
    ],
)
@pytest.mark.parametrize("kind", ["ollama", "openai"])
async def test_a_wrong_answer_is_one_sentence(kind: str, failure: str, sentence: str) -> None:
    with EmbeddingServer(failure=failure, length=8) as server, pytest.raises(StoreError, match=sentence):
        await packed(embedder(server, kind), ["a boat", "some tea"])


async def test_a_server_that_is_not_there_is_one_sentence() -> None:
    with EmbeddingServer() as server:
        gone = embedder(server)

    with pytest.raises(StoreError, match="cannot be reached"):
        await packed(gone, ["a boat"])


@pytest.mark.parametrize("url", ["http://[", "nowhere", "http://127.0.0.1:99999", "ftp://127.0.0.1"])
async def test_an_address_that_is_none_is_one_sentence(url: str) -> None:
    with pytest.raises(StoreError):
        await packed(HttpEmbedder(kind="ollama", url=url, model="m"), ["a boat"])
    assert await list_embedding_models(url) is None


async def test_only_models_that_embed_are_listed() -> None:
    with EmbeddingServer() as server:
        assert await list_embedding_models(server.url) == ["nomic-embed-text:latest"]
    assert await list_embedding_models(server.url) is None
