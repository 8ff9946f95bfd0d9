"""A lazy pattern is compiled at its first use, and then behaves like any other."""

import re

import pytest

from weft.types.lazy_pattern import lazy_pattern


def test_it_has_the_methods_of_a_pattern() -> None:
    digits = lazy_pattern(r"(?P<tens>\d)(\d)")

    match = digits.search("a 42")

    assert match is not None
    assert (match["tens"], match.span()) == ("4", (2, 4))
    assert digits.sub("-", "17 and 23") == "- and -"
    assert digits.findall("17 and 23") == [("1", "7"), ("2", "3")]
    assert lazy_pattern("a", re.IGNORECASE).fullmatch("A")


def test_it_is_compiled_once_and_only_when_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []

    def note(pattern: str, flags: int) -> re.Pattern[str]:
        compiled.append(pattern)
        return original(pattern, flags)

    original = re.compile
    monkeypatch.setattr(re, "compile", note)
    word = lazy_pattern(r"\w+")
    assert compiled == []

    assert word.match("one")
    assert word.match("two")
    assert word.findall("three four") == ["three", "four"]

    assert compiled == [r"\w+"]
