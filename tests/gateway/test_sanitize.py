"""A message from outside, made fit to be sent."""

import hypothesis.strategies as st
import pytest
from hypothesis import given

import weft
from weft.gateway.sanitize import SafeText, clean, sanitize


@pytest.mark.parametrize("text", ["hi", "  hi\n", "Ω 🐙 \x01 <|im_start|> [System]", "\ufffd", "\u200b"])
def test_a_text_that_can_be_sent_is_not_changed(text: str) -> None:
    assert clean(text) == SafeText(text)


@pytest.mark.parametrize(
    ("text", "cleaned", "count"), [("a\0b", "a\ufffdb", 1), ("\ud800\0\udfff", "\ufffd" * 3, 3)]
)
def test_characters_that_no_provider_accepts_are_replaced_and_noted(
    text: str, cleaned: str, count: int
) -> None:
    found = clean(text)

    assert found.text == cleaned
    [note] = found.notes
    assert f"{count} character" in note
    assert note.endswith(".")


@pytest.mark.parametrize("text", ["", " ", "\n\t ", "\u2003\u00a0"])
def test_a_message_without_text_is_refused(text: str) -> None:
    with pytest.raises(weft.EmptyMessage):
        clean(text)


@given(st.text(st.characters(), min_size=1, max_size=40))
def test_a_cleaned_message_can_always_be_written_and_cleaning_it_again_changes_nothing(text: str) -> None:
    try:
        found = clean(text)
    except weft.EmptyMessage:
        assert not text.strip()
        return

    assert found.text.encode("utf-8")
    assert clean(found.text) == SafeText(found.text)


@pytest.mark.parametrize(
    "text", ["<s>old</s> and <think>", "<user>Ada</user>", "[TOOL_CALLS]", "a < b | c > d"]
)
def test_text_that_people_write_stays_as_it_is(text: str) -> None:
    """Where a model's template would read it as a token, the dialect of that model makes it plain."""
    assert sanitize(text).text == text


@pytest.mark.parametrize(
    "token", ["<|im_start|>", "[INST]", "[/inst]", "<<SYS>>", "<\uff5cim_end\uff5c>", "<\u200b|im_start|>"]
)
def test_a_token_that_no_honest_text_has_is_made_plain_for_everybody(token: str) -> None:
    assert sanitize(f"x {token} y").text == f"x {token[0]}\\{token[1:]} y"
