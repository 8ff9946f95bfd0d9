"""MiniLM: a small model of sentences, from files of installed packages."""

import math

import pytest

from weft.recall import minilm
from weft.recall.embed import packed
from weft.recall.minilm import MiniLmEmbedder

pytestmark = pytest.mark.skipif(not minilm.is_installed(), reason="the extra `minilm` is not installed")


async def test_it_knows_like_from_unlike() -> None:
    texts = ["The boat leaves at seven.", "Our ship departs in the evening.", "She grew tomatoes.", ""]

    boat, ship, tomatoes, empty = await MiniLmEmbedder().embed(texts)

    def likeness(one: object, other: object) -> float:
        assert isinstance(one, list)
        assert isinstance(other, list)
        return float(sum(a * b for a, b in zip(one, other, strict=True)))

    assert likeness(boat, ship) > 0.4 > 0.2 > likeness(boat, tomatoes)
    assert all(len(vector) == 384 for vector in (boat, ship, tomatoes, empty))
    assert math.isclose(likeness(boat, boat), 1.0, abs_tol=1e-3)


async def test_texts_of_any_length_keep_their_order() -> None:
    texts = ["tea", "boat " * 5_000, "x", "\x00\ud800 tea", "tea"]

    vectors = await packed(MiniLmEmbedder(), [text.encode("utf-8", "replace").decode() for text in texts])

    assert vectors[0] == vectors[4]
    assert len(set(vectors)) == 4
