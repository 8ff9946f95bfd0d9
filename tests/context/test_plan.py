"""From what is offered to what is shown."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

import weft
from weft.context.plan import ContextPlan, Materials, plan
from weft.context.render import visible_history
from weft.types.build import BuildSpec
from weft.types.recipe import Layer, Recipe
from weft.types.section import Keep, Offer, Piece, Withheld
from weft.types.session import Tail

from samples import assistant, tail_of, user

HISTORY, MESSAGE = Layer(source="history"), Layer(source="message")
CORE = Layer(source="blocks", keep=Keep.ALWAYS, options={"kind": "core"})
WORKING = Layer(source="blocks", options={"kind": "working"})


def recipe(*layers: Layer, tokens: str = "chars/4", **more: object) -> Recipe:
    plain = Recipe(name="test", limits=weft.ModelContextLimits(max_tokens=10_000), layers=(HISTORY, MESSAGE))
    return plain.replace(layers=layers or (HISTORY, MESSAGE), tokens=tokens, **more)


def offer(*texts: str, join: str | None = None, worth: Sequence[float] = ()) -> Offer:
    pieces = tuple(Piece(text=text, title=str(at)) for at, text in enumerate(texts))
    return Offer(pieces=pieces, join=join, worth=tuple(worth))


def planned(chosen: Recipe, *offers: Offer, tail: Tail | None = None, **spec: Any) -> ContextPlan:
    """Plan with the given offers for the first layers and none for the rest."""
    rest = (Offer(),) * (len(chosen.layers) - len(offers))
    built = BuildSpec(recipe=chosen, **{"message": "hi"} | spec)
    return plan(Materials(spec=built, offers=offers + rest, tail=tail or Tail()))


def texts(made: ContextPlan) -> list[str]:
    return [one.text for one in made.sections]


RECALL = Layer(source="recall", keep=Keep.IF_ROOM)


def test_everything_is_shown_while_there_is_room() -> None:
    made = planned(recipe(RECALL, HISTORY, MESSAGE), offer("one", "two"), tail=tail_of([user("said")]))

    assert texts(made) == ["one", "two"]
    assert [m.content for m in visible_history(made)] == ["said"]
    assert made.over < 0


def test_joined_pieces_are_one_section_that_says_how_many_of_how_many() -> None:
    titled = replace(RECALL, title="Title:", tag="mark")
    given = offer("one", "two", join="\n")
    withheld = (Withheld(title="more", tokens=9, reason="limit", count=3),)

    made = planned(recipe(titled, HISTORY, MESSAGE), replace(given, withheld=withheld))

    assert texts(made) == ["<context:mark>\nTitle:\none\ntwo\n</context:mark>"]
    assert [one.title for one in made.sections] == ["2 of 5 entries"]


def test_a_single_joined_piece_keeps_its_own_title() -> None:
    given = Offer(pieces=(Piece(text="one", title="the only one"),), join="\n")

    made = planned(recipe(RECALL, HISTORY, MESSAGE), given)

    assert [one.title for one in made.sections] == ["the only one"]


def test_the_piece_worth_least_gives_way_and_the_others_keep_their_order() -> None:
    chosen = recipe(RECALL, HISTORY, MESSAGE, max_context_tokens=22)

    made = planned(chosen, offer("a" * 40, "b" * 40, "c" * 40, worth=(2, 1, 3)))

    assert texts(made) == ["a" * 40, "c" * 40]
    assert made.visible[0] == frozenset({0, 2})


def test_without_worth_the_last_piece_gives_way_first() -> None:
    chosen = recipe(RECALL, HISTORY, MESSAGE, max_context_tokens=22)

    made = planned(chosen, offer("a" * 40, "b" * 40, "c" * 40))

    assert texts(made) == ["a" * 40, "b" * 40]


def test_a_title_is_not_shown_over_nothing() -> None:
    titled = replace(RECALL, title="Title:", tag="mark")
    chosen = recipe(titled, HISTORY, MESSAGE, max_context_tokens=5)
    given = offer("a" * 400, join="\n")

    made = planned(chosen, given)

    assert made.sections == ()


def test_a_layer_keeps_to_its_own_limit_and_says_so() -> None:
    tight = replace(RECALL, max_tokens=15)

    made = planned(recipe(tight, HISTORY, MESSAGE), offer("a" * 40, "b" * 40))

    assert texts(made) == ["a" * 40]
    assert made.excluded[0] == {1: "over the 15 tokens for this layer"}


# --- memory blocks share one limit


def test_core_blocks_take_from_the_memory_limit_before_working_ones() -> None:
    chosen = recipe(WORKING, CORE, HISTORY, MESSAGE, memory_tokens=25)

    made = planned(chosen, offer("w" * 40, "v" * 40), offer("c" * 60))

    assert texts(made) == ["w" * 40, "c" * 60]
    assert made.excluded[0] == {1: "over the 25 tokens for memory blocks"}


def test_core_blocks_over_the_memory_limit_are_refused_with_the_largest_named() -> None:
    chosen = recipe(CORE, HISTORY, MESSAGE, memory_tokens=25)
    pieces = (Piece(text="c" * 60, title="small"), Piece(text="c" * 80, title="large"))

    with pytest.raises(weft.BudgetExceeded) as caught:
        planned(chosen, Offer(pieces=pieces))

    assert (caught.value.needed, caught.value.budget, caught.value.largest) == (35, 25, "large")
    assert "context.memory_tokens" in str(caught.value)


def test_a_recipe_that_sends_what_is_too_large_sends_its_core_blocks_and_no_others() -> None:
    chosen = recipe(CORE, WORKING, HISTORY, MESSAGE, memory_tokens=25, overflow="send")

    made = planned(chosen, offer("c" * 200), offer("w"))

    assert texts(made) == ["c" * 200]


# --- too much


def test_what_must_be_shown_and_is_too_large_is_refused_with_its_largest_part() -> None:
    always = replace(RECALL, keep=Keep.ALWAYS)
    chosen = recipe(always, HISTORY, MESSAGE, max_context_tokens=50)

    with pytest.raises(weft.BudgetExceeded) as caught:
        planned(chosen, Offer(pieces=(Piece(text="a" * 400, title="the long one"),)))

    assert (caught.value.needed, caught.value.budget, caught.value.largest) == (100, 50, "the long one")


def test_a_message_that_is_too_large_is_named_as_the_largest_part() -> None:
    with pytest.raises(weft.BudgetExceeded, match="The largest part is 'message'"):
        planned(recipe(max_context_tokens=50), message="m" * 400)


def test_tools_count_and_the_largest_is_named() -> None:
    tool = weft.ToolDefinition(name="look_up", description="d" * 400)

    with pytest.raises(weft.BudgetExceeded, match="tool look_up"):
        planned(recipe(max_context_tokens=50), tools=(tool,))


def test_an_error_about_room_says_how_much_is_reserved_and_names_what_a_person_can_change() -> None:
    tool = weft.ToolDefinition(name="look_up", description="d" * 400)
    chosen = recipe(max_context_tokens=200, reserved_response_tokens=150)

    with pytest.raises(weft.BudgetExceeded) as of_tool:
        planned(chosen, tools=(tool,))
    with pytest.raises(weft.BudgetExceeded) as of_message:
        planned(chosen, message="m" * 1_000)

    needed = of_tool.value.needed
    assert str(of_tool.value) == (
        f"What must be shown needs {needed} tokens but the budget is 50: 150 of 200 are reserved for "
        "the answer. The largest part is 'tool look_up': raise `context.max_tokens`, "
        "or lower `context.reserved_response_tokens`."
    )
    assert str(of_message.value) == (
        "What must be shown needs 250 tokens but the budget is 50: 150 of 200 are reserved for the answer. "
        "The largest part is 'message': shorten it, or raise `context.max_tokens`."
    )


def test_a_history_that_is_never_cut_and_is_too_large_is_named_as_the_largest_part() -> None:
    chosen = recipe(max_context_tokens=50, history={"strategy": "none"})

    with pytest.raises(weft.BudgetExceeded) as caught:
        planned(chosen, tail=tail_of([user("u" * 400), assistant("a" * 400)]))

    assert "history" in caught.value.largest


def test_a_recipe_that_sends_what_is_too_large_says_by_how_much() -> None:
    made = planned(recipe(max_context_tokens=50, overflow="send"), message="m" * 400)

    assert (made.total, made.over) == (100, 50)


def test_all_that_can_give_way_does_so_even_for_a_message_that_never_fits() -> None:
    chosen = recipe(RECALL, HISTORY, MESSAGE, max_context_tokens=50, overflow="send")

    made = planned(chosen, offer("a" * 40), tail=tail_of([user("u" * 40)]), message="m" * 400)

    assert (texts(made), visible_history(made)) == ([], ())


# --- what things cost


def test_the_history_may_fill_the_room_to_the_last_token() -> None:
    tail = tail_of([user("u" * 40), user("v" * 40)])

    exact = planned(recipe(max_context_tokens=30), tail=tail, message="m" * 40)
    short = planned(recipe(max_context_tokens=29), tail=tail, message="m" * 40)

    assert (len(visible_history(exact)), exact.over) == (2, 0)
    assert len(visible_history(short)) == 1


def test_sections_that_share_a_message_are_counted_as_the_text_they_make() -> None:
    chosen = recipe(RECALL, HISTORY, MESSAGE)

    made = planned(chosen, offer("abc", "abc", "abc"), message="m" * 4)

    assert made.total == len("abc\n\nabc\n\nabc") // 4 + 1
    assert made.framing_tokens == 3


def test_in_the_form_of_messages_each_section_is_counted_alone() -> None:
    chosen = recipe(RECALL, HISTORY, MESSAGE, form="messages")

    made = planned(chosen, offer("abc", "abc", "abc"), message="m" * 4)

    assert (made.total, made.framing_tokens) == (1, 0)


def test_exact_counts_add_four_tokens_for_every_message() -> None:
    chosen = recipe(RECALL, HISTORY, MESSAGE, tokens="exact")
    tail = tail_of([user("hello"), assistant("hello")], count="exact")

    made = planned(chosen, offer("hello"), tail=tail, message="hello")

    assert made.total == 4 * 1 + 4 * 4
    assert made.framing_tokens == 16


def test_a_tag_in_the_message_is_counted_as_it_is_sent() -> None:
    tagged = recipe(CORE, HISTORY, MESSAGE)
    plain = recipe(RECALL, HISTORY, MESSAGE)

    assert planned(tagged, message="<block:a>..").materials.message_tokens == len("&lt;block:a>..") // 4
    assert planned(plain, message="<block:a>..").materials.message_tokens == len("<block:a>..") // 4


def test_the_callers_rule_for_history_takes_the_place_of_the_recipes() -> None:
    chosen = recipe(history={"unit": "message"})

    made = planned(
        chosen, tail=tail_of([user("one"), user("two")]), config=weft.ContextConfig(max_messages_cap=1)
    )

    assert [m.content for m in visible_history(made)] == ["two"]


def test_a_share_protects_the_history_until_nothing_else_has_more_to_give() -> None:
    preferred = replace(RECALL, keep=Keep.PREFERRED)
    tail = tail_of([user("u" * 40), user("v" * 40)])
    offered = offer("a" * 40, "b" * 40)

    free = recipe(preferred, HISTORY, MESSAGE, max_context_tokens=25)
    shared = recipe(preferred, replace(HISTORY, share=0.9), MESSAGE, max_context_tokens=25)

    assert [len(visible_history(planned(chosen, offered, tail=tail))) for chosen in (free, shared)] == [0, 2]
    assert len(texts(planned(shared, offered, tail=tail))) == 0
