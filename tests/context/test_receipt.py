"""The account of a build: every part that is shown, every part that is not, and why."""

from dataclasses import replace

import pytest

import weft
from weft.context.plan import Materials, plan
from weft.context.receipt import account
from weft.types.build import BuildSpec
from weft.types.recipe import Layer, Recipe
from weft.types.section import Keep, Offer, Origin, Piece, Stability, Withheld
from weft.types.session import Tail

from samples import assistant, tail_of, user

RECALL = Layer(source="recall", keep=Keep.IF_ROOM)
SKILLS = Layer(source="skills")
TEST = Recipe(
    name="test",
    tokens="chars/4",
    limits=weft.ModelContextLimits(max_tokens=1000),
    layers=(SKILLS, Layer(source="history"), RECALL, Layer(source="message")),
)


def piece(text: str, title: str) -> Piece:
    return Piece(title=title, text=text, why="because", origin=Origin.WEB, stability=Stability.STATIC)


def receipt_of(
    recipe: Recipe = TEST,
    *,
    skills: Offer | None = None,
    recall: Offer | None = None,
    tail: Tail | None = None,
    tools: tuple[weft.ToolDefinition, ...] = (),
    warnings: tuple[str, ...] = (),
    pictures: int = 0,
) -> weft.Receipt:
    parts = ({"type": "image"},) * pictures
    made = Materials(
        spec=BuildSpec(recipe=recipe, message="m" * 40, tools=tools, parts=parts),
        offers=(skills or Offer(), Offer(), recall or Offer(), Offer()),
        tail=tail or Tail(),
    )
    return account(plan(made), warnings=warnings)


def spoken(count: int, *, before: int = 0) -> Tail:
    """Messages of ten tokens each; one token each for those before them."""
    speakers = (user, assistant)
    return tail_of([speakers[at % 2]("x" * 40) for at in range(count)], before=before)


def stretches(receipt: weft.Receipt) -> list[tuple[str, tuple[int, ...], int, bool, str]]:
    return [
        (item.title, item.span, item.tokens, item.kept, item.reason)
        for item in receipt.items
        if item.layer == "history"
    ]


def test_items_stand_in_the_order_of_the_recipe_after_the_tools() -> None:
    receipt = receipt_of(
        skills=Offer(join=None, pieces=(piece("s" * 40, "a skill"),)),
        recall=Offer(join=None, pieces=(piece("r" * 40, "a memory"),)),
        tail=spoken(2),
        tools=(weft.ToolDefinition(name="look_up"),),
    )

    assert [(item.layer, item.title) for item in receipt.items] == [
        ("tools", "look_up"),
        ("skills", "a skill"),
        ("history", "messages 1-2"),
        ("recall", "a memory"),
        ("message", "the message"),
    ]


def test_pictures_of_the_message_are_priced_and_lower_the_room_of_the_history() -> None:
    roomy = replace(TEST, limits=weft.ModelContextLimits(max_tokens=3000))

    plain, pictured = receipt_of(roomy, tail=spoken(280)), receipt_of(roomy, tail=spoken(280), pictures=2)

    item = next(item for item in pictured.items if item.title == "2 pictures")
    assert (item.layer, item.tokens, item.kept, item.origin) == ("message", 2000, True, "user")
    assert plain.dropped == ()
    assert pictured.total_tokens <= pictured.limit
    assert [item.layer for item in pictured.dropped] == ["history"]


def test_an_item_says_who_wrote_it_why_it_is_there_and_how_long_it_stays() -> None:
    [item] = [
        item
        for item in receipt_of(skills=Offer(join=None, pieces=(piece("s" * 40, "a skill"),))).items
        if item.layer == "skills"
    ]

    assert (item.tokens, item.kept, item.reason, item.origin, item.zone) == (
        10,
        True,
        "because",
        "web",
        "static",
    )


def test_what_goes_with_the_message_is_in_the_zone_of_the_turn() -> None:
    receipt = receipt_of(recall=Offer(join=None, pieces=(piece("r" * 40, "a memory"),)))

    assert {item.zone for item in receipt.items if item.layer in ("recall", "message")} == {"turn"}


def test_a_piece_that_lost_its_place_is_listed_with_its_price_and_the_budget() -> None:
    pieces = (piece("a" * 40, "first"), piece("b" * 80, "second"))

    receipt = receipt_of(TEST.replace(max_context_tokens=25), recall=Offer(pieces=pieces, join="\n"))

    [dropped] = receipt.dropped
    assert (dropped.title, dropped.tokens, dropped.reason) == (
        "second",
        20,
        "gave way: the budget is 25 tokens",
    )
    assert [item.title for item in receipt.kept if item.layer == "recall"] == ["first"]


def test_a_piece_beyond_its_layers_own_limit_is_listed_with_that_limit() -> None:
    tight = TEST.replace(layers=(replace(SKILLS, max_tokens=10), *TEST.layers[1:]))
    pieces = (piece("a" * 40, "first"), piece("b" * 40, "second"))

    receipt = receipt_of(tight, skills=Offer(join=None, pieces=pieces))

    assert [item.reason for item in receipt.dropped] == ["over the 10 tokens for this layer"]


def test_what_a_source_withheld_is_listed_with_its_own_reason() -> None:
    withheld = (Withheld(title="4 entries", tokens=77, reason="less relevant", count=4),)

    [dropped] = receipt_of(recall=Offer(join=None, withheld=withheld)).dropped

    assert (dropped.layer, dropped.title, dropped.tokens, dropped.reason) == (
        *("recall", "4 entries", 77, "less relevant"),
    )


def test_a_history_that_is_shown_whole_is_one_stretch() -> None:
    assert stretches(receipt_of(tail=spoken(4))) == [
        ("messages 1-4", (1, 4), 40, True, "the newest messages")
    ]


def test_a_single_message_is_not_a_range() -> None:
    [only] = stretches(receipt_of(tail=spoken(1)))

    assert only[:2] == ("message 1", (1, 1))


def test_an_empty_history_has_no_item() -> None:
    assert stretches(receipt_of()) == []


def test_what_gave_way_and_what_is_shown_are_two_stretches() -> None:
    assert stretches(receipt_of(TEST.replace(max_context_tokens=35), tail=spoken(6))) == [
        ("messages 1-4", (1, 4), 40, False, "gave way: the budget is 35 tokens"),
        ("messages 5-6", (5, 6), 20, True, "the newest messages"),
    ]


def test_the_recipes_limit_and_the_budget_are_told_apart() -> None:
    recipe = TEST.replace(max_context_tokens=35, max_history_messages=4)

    assert stretches(receipt_of(recipe, tail=spoken(6))) == [
        ("messages 1-2", (1, 2), 20, False, "older than the newest 4 messages"),
        ("messages 3-4", (3, 4), 20, False, "gave way: the budget is 35 tokens"),
        ("messages 5-6", (5, 6), 20, True, "the newest messages"),
    ]


def test_messages_that_were_never_loaded_are_numbered_and_priced() -> None:
    recipe = TEST.replace(max_history_messages=2)

    assert stretches(receipt_of(recipe, tail=spoken(4, before=10))) == [
        ("messages 1-12", (1, 12), 10 + 20, False, "older than the newest 2 messages"),
        ("messages 13-14", (13, 14), 20, True, "the newest messages"),
    ]


def test_a_history_of_which_nothing_is_shown_is_still_accounted_for() -> None:
    assert stretches(receipt_of(TEST.replace(max_context_tokens=12), tail=spoken(2, before=3))) == [
        ("messages 1-5", (1, 5), 23, False, "gave way: the budget is 12 tokens"),
    ]


def test_warnings_of_the_build_come_before_those_of_the_sources() -> None:
    receipt = receipt_of(
        skills=Offer(join=None, warnings=("broken skill",)),
        recall=Offer(join=None, warnings=("slow",)),
        warnings=("first",),
    )

    assert receipt.warnings == ("first", "broken skill", "slow")


def test_a_receipt_knows_its_recipe_its_count_and_its_limit() -> None:
    receipt = receipt_of(TEST.replace(max_context_tokens=100, reserved_response_tokens=30))

    assert (receipt.recipe, receipt.counter, receipt.limit) == ("test", "chars/4", 70)
    assert (receipt.provider, receipt.model, receipt.usage) == ("", "", None)


@pytest.mark.parametrize(("window", "over"), [(10, False), (9, True)])
def test_a_receipt_is_over_its_limit_only_above_it(window: int, over: bool) -> None:
    receipt = receipt_of(TEST.replace(max_context_tokens=window, overflow="send"))

    assert (receipt.total_tokens, receipt.over_limit) == (10, over)


def test_rounding_that_joining_brings_is_an_item_of_its_own() -> None:
    pieces = tuple(piece("abc", str(at)) for at in range(3))

    receipt = receipt_of(skills=Offer(join=None, pieces=pieces))

    assert receipt.by_layer == {"skills": 0, "message": 10, "framing": 3}
    assert receipt.total_tokens == 13
