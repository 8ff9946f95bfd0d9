"""How much a layer may attach to one message of an epoch."""

import pytest

from weft.context.attach import first_capped, saved_share
from weft.context.plan import Materials
from weft.types.build import BuildSpec
from weft.types.epoch import Epoch
from weft.types.limits import ContextConfig, ModelContextLimits
from weft.types.recipe import Recipe

FIRST, LATER = Epoch(number=1), Epoch(number=2)
ROOM = 10_000


def caps(room: int, *, is_first: bool = False) -> dict[str, int | None]:
    """Return the most tokens that each layer behind the history may attach in a room of this size."""
    limits = ModelContextLimits(max_tokens=room + 1_000, memory_tokens=1_000, reserved_response_tokens=1_000)
    spec = BuildSpec(recipe=Recipe.load("weft"), config=ContextConfig(default_limits=limits), message="Hi")
    layers = first_capped(Materials(spec=spec), is_first=is_first).spec.recipe.layers
    return {layer.source: layer.max_tokens for layer in layers}


@pytest.mark.parametrize(("room", "most"), [(2_000, 48), (10_000, 100), (27_000, 270)])
def test_a_layer_that_is_shown_if_there_is_room_attaches_a_part_of_it(room: int, most: int) -> None:
    assert [caps(room)[layer] for layer in ("recall", "activity", "tasks", "memory_file")] == [most] * 4


def test_recall_never_attaches_more_than_the_recipe_says() -> None:
    assert caps(200_000)["recall"] == 1_500


def test_the_first_turn_of_a_session_may_attach_five_times_as_much() -> None:
    assert caps(ROOM, is_first=True)["recall"] == 500


def test_what_must_be_shown_has_no_limit() -> None:
    assert caps(ROOM)["bootstrap"] is None


def test_what_quiet_turns_did_not_attach_is_left_for_a_question() -> None:
    assert saved_share(FIRST, attached=100, turns=1, room=ROOM) == pytest.approx(0.05)
    assert saved_share(LATER, attached=0, turns=1, room=ROOM) == pytest.approx(0.02)
    assert saved_share(LATER, attached=50, turns=2, room=ROOM) == pytest.approx(0.025)


def test_what_is_left_never_grows_beyond_a_first_turn() -> None:
    assert saved_share(LATER, attached=0, turns=50, room=ROOM) == 0.05


def test_after_turns_that_attached_much_each_turn_has_its_own_share() -> None:
    assert saved_share(FIRST, attached=ROOM, turns=10, room=ROOM) == 0.01
    assert saved_share(LATER, attached=0, turns=0, room=0) == 0.01
