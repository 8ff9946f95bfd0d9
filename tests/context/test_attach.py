"""How much a layer may attach to one message of an epoch."""

import pytest

from weft.context.attach import first_capped
from weft.context.plan import Materials
from weft.types.build import BuildSpec
from weft.types.limits import ContextConfig, ModelContextLimits
from weft.types.recipe import Recipe


def caps(room: int, *, is_first: bool = False) -> dict[str, int | None]:
    """Return the most tokens that each layer behind the history may attach in a room of this size."""
    limits = ModelContextLimits(max_tokens=room + 1_000, memory_tokens=1_000, reserved_response_tokens=1_000)
    spec = BuildSpec(recipe=Recipe.load("weft"), config=ContextConfig(default_limits=limits), message="Hi")
    layers = first_capped(Materials(spec=spec), is_first=is_first).spec.recipe.layers
    return {layer.source: layer.max_tokens for layer in layers}


@pytest.mark.parametrize(("room", "recall"), [(2_000, 48), (10_000, 125), (17_000, 212), (27_000, 587)])
def test_recall_attaches_a_part_of_the_room_and_three_times_as_much_of_a_large_one(
    room: int, recall: int
) -> None:
    assert caps(room)["recall"] == recall


def test_a_large_room_counts_three_times_for_recall_alone() -> None:
    assert caps(27_000)["activity"] == caps(27_000)["tasks"] == 337


def test_recall_never_attaches_more_than_the_recipe_says() -> None:
    assert caps(200_000)["recall"] == 1_500


def test_the_first_turn_of_a_session_may_attach_four_times_as_much() -> None:
    assert caps(10_000, is_first=True)["recall"] == 500


def test_what_must_be_shown_has_no_limit() -> None:
    assert caps(10_000)["bootstrap"] is None
