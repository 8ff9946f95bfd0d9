"""How well a text answers a query, by the words they share."""

import hypothesis.strategies as st
import pytest
from hypothesis import given

from weft.recall.pieces import best_entries
from weft.recall.rank import Index, terms


def relevance(query: str, texts: list[str]) -> list[float]:
    return Index(texts).relevance(query)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("boat", "boats"),
        ("box", "boxes"),
        ("house", "houses"),
        ("city", "cities"),
        ("allergy", "allergies"),
        ("glass", "glasses"),
        ("address", "addresses"),
        ("dive", "diving"),
        ("dive", "dives"),
        ("dive", "dived"),
        ("plan", "planning"),
        ("stop", "stopped"),
        ("Peanut", "PEANUTS"),
    ],
)
def test_a_word_matches_its_plural_and_its_other_endings(one: str, other: str) -> None:
    assert relevance(one, [other])[0] > 0
    assert relevance(other, [one])[0] > 0


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("boat", "car"),
        ("cat", "category"),
        ("is the of and", "is the of and"),
        ("what about that", "tell me about that"),
        ("", "boat"),
        ("boat", ""),
        ("?!", "?!"),
    ],
)
def test_no_telling_word_in_common_is_no_relevance(query: str, text: str) -> None:
    assert relevance(query, [text]) == [0.0]


def test_one_score_for_each_text_in_their_order() -> None:
    scores = relevance("boat", ["a boat", "a car", "the boat"])

    assert len(scores) == 3
    assert [score > 0 for score in scores] == [True, False, True]


def test_no_texts_have_no_scores() -> None:
    assert relevance("boat", []) == []


def test_a_rare_word_counts_more_than_a_common_one() -> None:
    texts = ["boat trip", "boat trip", "boat trip", "marlin trip"]

    scores = relevance("boat marlin", texts)

    assert scores[3] > scores[0]


def test_more_words_in_common_count_more() -> None:
    both, one, neither = relevance("boat pier", ["boat at pier four", "boat at dock four", "car at lot four"])

    assert both > one > neither == 0


def test_a_long_text_does_not_win_by_its_length() -> None:
    short, long = relevance("boat", ["boat", "boat " + "other words here " * 20])

    assert short > long > 0


def test_a_word_said_often_counts_once() -> None:
    once, often = relevance("boat", ["boat car bus van", "boat boat boat boat"])

    assert once == often


@pytest.mark.parametrize(
    ("query", "near", "far"),
    [
        ("京都に行きたい", "来週は京都へ旅行", "猫が好き"),
        ("花生过敏", "我对花生过敏", "船在四号码头"),
        ("서울여행", "서울여행 계획", "고양이"),
        ("猫", "猫", "犬"),
    ],
)
def test_scripts_without_spaces_are_compared_by_pairs_of_characters(query: str, near: str, far: str) -> None:
    hit, miss = relevance(query, [near, far])

    assert hit > miss == 0


def test_letters_with_accents_are_letters() -> None:
    assert relevance("café", ["un café noir", "un the noir"])[0] > 0


def test_the_two_ways_to_write_an_accent_are_the_same_word() -> None:
    assert relevance("caf\u00e9 ole", ["cafe\u0301"])[0] > 0


def test_terms_are_the_telling_words_without_their_endings() -> None:
    assert terms("The boats are leaving, you_know: 4 piers!") == ("boat", "leav", "know", "4", "pier")


@given(st.text(max_size=40), st.lists(st.text(max_size=40), max_size=6))
def test_scores_are_finite_and_never_below_zero(query: str, texts: list[str]) -> None:
    scores = relevance(query, texts)

    assert len(scores) == len(texts)
    assert all(0 <= score < 1000 for score in scores)


@given(st.text(max_size=40).filter(lambda text: bool(terms(text))), st.text(max_size=40))
def test_a_text_is_relevant_to_itself_and_at_least_as_much_as_any_other(text: str, other: str) -> None:
    itself, another = relevance(text, [text, other])

    assert itself > 0
    assert another == 0 or set(terms(text)) & set(terms(other))


WORDS = st.sampled_from("boat boats city cities plan planning tide the a 海 海辺 sea".split())
ENTRIES = st.lists(st.lists(WORDS, min_size=1, max_size=6).map(" ".join), max_size=30)


@given(ENTRIES, st.lists(WORDS, min_size=1, max_size=4).map(" ".join), st.integers(1, 40), st.integers(1, 7))
def test_entries_in_pieces_are_found_like_entries_in_an_index(
    entries: list[str], query: str, limit: int, size: int
) -> None:
    pieces = [entries[at : at + size] for at in range(0, len(entries), size)]
    scores = Index(entries).relevance(query)

    best = best_entries(lambda: pieces, query, limit)

    assert (best.count, best.chars) == (len(entries), sum(map(len, entries)))
    assert len(best.entries) == min(limit, len(entries))
    relevant = {entry for entry, score in zip(entries, scores, strict=True) if score}
    if limit >= len(entries):
        assert sorted(best.entries) == sorted(entries)
        assert all(entry in relevant for entry in best.entries[: sum(score > 0 for score in scores)])
    elif sum(score > 0 for score in scores) >= limit:
        assert all(entry in relevant for entry in best.entries)
