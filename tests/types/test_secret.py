"""Secrets are searched for after a text was cut, and in one pass."""

import pytest

from weft.types import secret as secret_module
from weft.types.secret import brief, secrets_in, without_secrets

KEY = "sk-ant-abcdEFGH1234567890abcdEFGH1234567890"
PEM = f"-----BEGIN PRIVATE KEY-----\n{'MIIabc123+/=' * 20}\n-----END PRIVATE KEY-----"


def test_a_long_text_is_cut_before_secrets_are_searched_for(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []

    def noted(text: str) -> list[str]:
        sizes.append(len(text))
        return secrets_in(text)

    monkeypatch.setattr(secret_module, "secrets_in", noted)
    long = f"{KEY} said " + "word " * 1_000_000 + f"and {KEY} ended"

    assert brief(long).startswith("*** said word word")
    assert brief(long, tail=True).endswith("and *** ended")
    assert max(sizes) <= 12_000 < len(long)


@pytest.mark.parametrize("secret", [KEY, PEM])
def test_a_secret_at_the_cut_is_never_half_shown(secret: str) -> None:
    for spaces in range(12_000 - len(secret), 12_001, 7):
        start = brief(" " * spaces + secret + " word" * 10_000)
        end = brief("word " * 10_000 + secret + " " * spaces, tail=True)
        assert "abc" not in start + end


def test_many_secrets_are_replaced_in_one_pass_wherever_they_stand() -> None:
    values = [f"abcd{number}x" for number in range(1000)]
    named = " ".join(f"password={value}" for value in values)

    text = without_secrets(f"{named} and abcd7x again, abcd999x too")

    assert text == " ".join(["password=***"] * 1000) + " and *** again, *** too"


def test_the_longer_of_two_secrets_with_one_start_is_replaced() -> None:
    values = [f"abcdef{number}" for number in range(20)]
    text = without_secrets(" ".join(f"password={value}" for value in values) + " abcdef1 abcdef19")
    assert text == " ".join(["password=***"] * 20) + " *** ***"


class _Watched(str):
    """A text that adds up how much of it was searched."""

    __slots__ = ()
    searched = 0

    def find(self, sub: str, start: int = 0, end: int | None = None) -> int:  # type: ignore[override]
        end = len(self) if end is None else min(end, len(self))
        type(self).searched += max(end - start, 0)
        return super().find(sub, start, end)


def test_a_text_is_searched_once_for_the_end_of_keys_however_many_begin() -> None:
    text = _Watched("-----BEGIN PRIVATE KEY-----\n" * 10_000)
    _Watched.searched = 0

    assert secrets_in(text) == []

    assert _Watched.searched <= 2 * len(text)


def test_a_key_is_found_to_its_end_or_as_far_as_it_looks_like_one() -> None:
    cut = PEM[:150]
    assert secrets_in(f"first\n{PEM}\nthen") == [PEM]
    assert secrets_in(f"first {cut}") == [cut]
    assert secrets_in(PEM + PEM) == [PEM]
