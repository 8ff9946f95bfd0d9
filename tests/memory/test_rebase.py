"""Rebasing a change of a text onto what the text has become."""

import hypothesis.strategies as st
import pytest
from hypothesis import given

from weft.memory.blockdoc import BlockDoc
from weft.memory.rebase import apply_steps, rebase
from weft.types.schema import TextSchema

TEXT = st.text("abcdé🐠\n", max_size=12)


@pytest.mark.parametrize(
    ("old", "new", "others", "both"),
    [
        ("one\n", "one\nmine\n", "one\ntheirs\n", "one\ntheirs\nmine\n"),
        ("one two three", "one three", "one two three four", "one three four"),
        ("one two three", "one 2 three", "zero one two three", "zero one 2 three"),
        ("one two three", "", "one two new three", "new "),
        ("one", "two", "one", "two"),
        ("one", "one", "two", "two"),
        ("", "mine", "theirs", "theirsmine"),
        ("one two", "one 2", "", "2"),
    ],
)
def test_both_changes_are_there(old: str, new: str, others: str, both: str) -> None:
    doc = BlockDoc(schema=TextSchema(), label="x")
    doc.splice_text(0, 0, old)
    seen = doc.frontiers()
    at = 0
    while at < min(len(old), len(others)) and old[at] == others[at]:
        at += 1
    end = 0
    while end < min(len(old), len(others)) - at and old[-1 - end] == others[-1 - end]:
        end += 1
    doc.splice_text(at, len(old) - end - at, others[at : len(others) - end])

    assert doc.rebase(new, seen) == both


@given(TEXT, TEXT, st.lists(st.tuples(st.integers(0, 12), st.integers(0, 5), TEXT), max_size=4))
def test_what_others_wrote_stays_and_what_was_removed_goes(
    old: str, new: str, edits: list[tuple[int, int, str]]
) -> None:
    doc = BlockDoc(schema=TextSchema(), label="x")
    doc.splice_text(0, 0, old)
    seen = doc.frontiers()
    for start, removed, added in edits:
        length = doc.text_length()
        place = min(start, length)
        doc.splice_text(place, min(removed, length - place), added)

    assert doc.rebase(old, seen) == doc.text()
    assert doc.rebase(new, doc.frontiers()) == new
    if not edits:
        assert doc.rebase(new, seen) == new


@given(TEXT, TEXT, st.lists(TEXT.filter(bool), max_size=4))
def test_nothing_that_others_added_is_lost(old: str, new: str, added: list[str]) -> None:
    steps: list[int | str] = []
    for number, words in enumerate(added):
        steps += [f"<{number}{words}>", 1] if number < len(old) else [f"<{number}{words}>"]

    merged = rebase(old, new, steps)

    assert all(f"<{number}{words}>" in merged for number, words in enumerate(added))
    assert len(merged) == len(new) + sum(len(w) + 3 for w in added)


@given(TEXT, TEXT)
def test_steps_lead_from_one_text_to_the_other(old: str, new: str) -> None:
    assert apply_steps(old, [-len(old), new] if old else [new]) == new
    assert apply_steps(old, []) == old
