"""What becomes of messages whose role a recipe does not know."""

import pytest

import weft
from weft.context.roles import with_known_roles
from weft.tokens import counter
from weft.types.session import Tail

from samples import assistant, result, tail_of, user

OMEGA, PATTERN = weft.Recipe.load("omega"), weft.Recipe.load("pattern")
CHAI, MINICLAW = weft.Recipe.load("chai"), weft.Recipe.load("miniclaw")


def stranger(role: str = "narrator") -> weft.Message:
    return weft.Message(role=role, content="It was night.", tool_call_id="x", tool_name="t")


def roles(tail: Tail) -> list[str]:
    return [entry.message.role for entry in tail.entries]


def test_a_history_in_known_roles_is_the_very_same() -> None:
    tail = tail_of([user("hi"), assistant("", "a"), result("a"), assistant("done")])

    assert with_known_roles(tail, MINICLAW) == (tail, 0)
    assert with_known_roles(tail, MINICLAW)[0] is tail


@pytest.mark.parametrize(("recipe", "role"), [(MINICLAW, "user"), (OMEGA, "assistant")])
def test_an_unknown_role_becomes_the_one_the_recipe_names(recipe: weft.Recipe, role: str) -> None:
    tail, changed = with_known_roles(tail_of([user("hi"), stranger()]), recipe)

    assert (roles(tail), changed) == (["user", role], 1)
    assert tail.entries[1].message == weft.Message(role=role, content="It was night.")


def test_the_recipe_that_keeps_roles_keeps_all_of_the_message() -> None:
    tail = tail_of([stranger()])

    assert with_known_roles(tail, CHAI) == (tail, 0)


def test_the_recipe_that_rejects_roles_says_which_message_and_what_is_known() -> None:
    tail = tail_of([user("hi"), stranger()], before=10)

    with pytest.raises(weft.ContextError) as caught:
        with_known_roles(tail, PATTERN)

    assert str(caught.value) == (
        "Message 12 of the history has the role 'narrator', which the recipe 'pattern' rejects: "
        "it knows system, user, assistant, tool."
    )


def test_where_results_are_not_known_calls_become_plain_text_too() -> None:
    tail, changed = with_known_roles(tail_of([user("hi"), assistant("Looking.", "a"), result("a")]), OMEGA)

    assert (roles(tail), changed) == (["user", "assistant", "assistant"], 2)
    assert all(not entry.message.tool_calls for entry in tail.entries)
    assert all(entry.message.tool_call_id is None for entry in tail.entries)


def test_a_message_that_lost_its_calls_costs_only_what_is_still_sent() -> None:
    tail, _ = with_known_roles(tail_of([assistant("Looking it up for you now.", "a", "b", "c")]), OMEGA)

    assert tail.entries[0].tokens == counter("chars/4").message(tail.entries[0].message)


def test_what_lies_before_the_loaded_history_is_left_as_it_is() -> None:
    tail, _ = with_known_roles(tail_of([stranger()], before=4), MINICLAW)

    assert (tail.messages_before, tail.tokens_before) == (4, 4)


def test_the_given_history_itself_is_not_changed() -> None:
    tail = tail_of([stranger()])

    with_known_roles(tail, MINICLAW)

    assert roles(tail) == ["narrator"]


def test_rejected_calls_are_not_blamed_on_a_role_that_is_known() -> None:
    data = PATTERN.replace(history={"roles": ["user", "assistant"]})

    with pytest.raises(weft.ContextError) as caught:
        with_known_roles(tail_of([user("hi"), assistant("", "a")]), data)

    assert "has the role 'assistant'" not in str(caught.value)
