"""What a text costs: exact counts, the estimates of other systems, and what is remembered."""

import json
import sys

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

import weft
from weft import tokens
from weft.tokens import COUNTERS, calls_json, count, count_anew, counter

from samples import assistant, user

LONG = "A boat leaves from pier four every morning. " * 60
"""Longer than the texts that are their own key in the cache."""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("hello", 1),
        ("hello world", 2),
        ("antidisestablishmentarianism", 6),
        ("2 + 2 = 4", 7),
        ("お誕生日おめでとう", 8),
        ("tiktoken is great!", 6),
        (" ", 1),
    ],
)
def test_exact_counts_are_those_of_the_vocabulary(text: str, expected: int) -> None:
    assert count(text) == expected
    assert count_anew(text) == expected


def test_marks_of_a_chat_format_are_counted_as_the_text_they_are() -> None:
    assert count("<|endoftext|>") > 1


@pytest.mark.parametrize("text", ["\0", "\ud800", "a\udfffb", "\ud83d\ude00"])
def test_characters_that_no_provider_takes_are_counted_as_what_is_sent_instead(text: str) -> None:
    assert count(text) >= 1
    assert count(text.replace("\0", "a")) >= 1


@pytest.mark.parametrize("at_the_end", ["\ud800", "\0"])
def test_a_long_text_with_such_a_character_is_counted_too(at_the_end: str) -> None:
    assert count(LONG + at_the_end) >= count(LONG)


def test_a_lone_surrogate_costs_what_its_replacement_costs() -> None:
    assert count("a\ud800b") == count("a\ufffdb")


@settings(deadline=None)
@given(st.text(max_size=80))
def test_a_remembered_count_is_the_count(text: str) -> None:
    assert count(text) == count_anew(text) == count(text)


def test_a_text_is_remembered_by_what_it_says_and_not_by_which_object_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for text in ("a short text that only this test counts", LONG + "that only this test counts"):
        first = count(text)
        monkeypatch.setattr(tokens, "count_anew", lambda _: -1)

        again = count("".join(list(text)))

        assert again == first
        monkeypatch.undo()


def test_texts_of_equal_length_are_not_taken_for_each_other() -> None:
    words, noise = LONG + "word" * 50, LONG + "q9#Z" * 50

    assert len(words) == len(noise)
    assert count(words) != count(noise)


def test_a_long_text_is_not_kept_alive_by_having_been_counted() -> None:
    text = LONG + str(object())
    before = sys.getrefcount(text)

    count(text)

    assert sys.getrefcount(text) == before


def test_a_short_text_is_its_own_key() -> None:
    text = "short " + str(object())
    before = sys.getrefcount(text)

    count(text)

    assert sys.getrefcount(text) > before


def test_the_memory_of_long_texts_does_not_grow_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "_long", {})
    monkeypatch.setattr(tokens, "_LONG_ENTRIES", 3)

    for number in range(8):
        count(LONG + str(number))

    assert len(tokens._long) <= 3


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("chars/4", "", 0),
        ("chars/4", "abc", 0),
        ("chars/4", "abcd", 1),
        ("chars/4", "🐙" * 7, 1),
        ("chars/5", "a" * 9, 1),
        ("chars/5", "a" * 10, 2),
        ("exact", "hello world", 2),
    ],
)
def test_a_counter_counts_as_its_name_says(name: str, text: str, expected: int) -> None:
    assert counter(name).text(text) == expected


def test_an_unknown_counter_names_the_nearest_known_one() -> None:
    with pytest.raises(weft.ConfigError, match=r"There is no token count 'chars/6': did you mean 'chars/"):
        counter("chars/6")


@given(st.sampled_from(sorted(COUNTERS)), st.lists(st.text(max_size=20), max_size=5))
def test_the_weights_of_parts_add_up_for_characters_and_never_fall_short_of_the_whole(
    name: str, parts: list[str]
) -> None:
    chosen = counter(name)

    total = chosen.tokens(sum(chosen.weight(part) for part in parts))

    if chosen.chars_per_token:
        assert total == chosen.text("".join(parts))
    else:
        assert total == sum(chosen.text(part) for part in parts)


def test_the_calls_of_a_message_are_counted_as_compact_json() -> None:
    message = assistant("Looking.", "a")
    calls = '[{"id":"a","name":"look_up","arguments":{"q":"a"}}]'

    assert calls_json(message) == calls
    assert counter("chars/4").message(message) == (len("Looking.") + len(calls)) // 4
    assert counter("exact").message(message) == count("Looking.") + count(calls)


def test_a_message_without_calls_costs_its_text() -> None:
    assert counter("chars/4").message(user("x" * 41)) == 10
    assert counter("exact").message(user("hello world")) == 2


def test_arguments_of_any_kind_can_be_counted() -> None:
    call = weft.ToolCall(id="1", name="t", arguments={"when": object(), "text": "Ω"})

    written = calls_json(weft.Message(role="assistant", content="", tool_calls=(call,)))

    assert json.loads(written)[0]["arguments"]["text"] == "Ω"
    assert "Ω" in written
