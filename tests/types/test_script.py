"""Which scripts a text is written in, at a price that does not grow with the text."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts import SAMPLES
from weft.types.script import SCRIPTS, script_of, writing_of

CLASSES = {
    "english": "plain",
    "german": "latin",
    "french": "latin",
    "russian": "cyrillic",
    "arabic": "arabic",
    "hindi": "devanagari",
    "chinese": "cjk",
    "japanese": "cjk",
    "korean": "cjk",
    "emoji": "emoji",
    "thai": "other",
    "greek": "other",
    "hebrew": "other",
    "tamil": "other",
    "bengali": "other",
}


@pytest.mark.parametrize(("language", "script"), CLASSES.items())
def test_every_language_has_its_script(language: str, script: str) -> None:
    assert script_of(SAMPLES[language]) == script
    assert writing_of(SAMPLES[language]).shares[script_of(SAMPLES[language])] > 0.95


@pytest.mark.parametrize("text", ["", "Hello", "{}\n\t", "“—…”", "naïve " + "word " * 100, "\u00a0"])
def test_text_with_hardly_a_letter_beyond_ascii_is_plain(text: str) -> None:
    assert script_of(text) == "plain"


def test_a_mixture_has_the_share_of_each_script() -> None:
    shares = writing_of(f"{SAMPLES['english']} {SAMPLES['hindi']}").shares

    assert set(shares) == {"plain", "devanagari"}
    assert 0.25 < shares["plain"] < 0.45, "by bytes, of which Hindi has more"
    assert sum(shares.values()) == pytest.approx(1)


@given(st.text(st.characters(), max_size=40))
def test_every_text_has_shares_that_add_up(text: str) -> None:
    writing = writing_of(text)

    assert set(writing.shares) <= set(SCRIPTS)
    assert sum(writing.shares.values()) == pytest.approx(1)
    assert len(text) * writing.bytes_per_char == pytest.approx(len(text.encode("utf-8", "surrogatepass")))


def test_a_long_text_is_looked_at_in_samples() -> None:
    began = time.perf_counter()
    for number in range(20):
        assert script_of(SAMPLES["arabic"] * 20_000 + str(number)) == "arabic"  # 4 million characters each
    took = time.perf_counter() - began

    assert took < 1.0, "most of that is to make the texts"
    assert script_of("a" * 5000 + "я" * 5000) == "cyrillic"
