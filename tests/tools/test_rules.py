"""Rules about tool calls, in the course of one turn."""

import pytest

from weft import ToolRule
from weft.tools.rules import RuleWatch


def done(watch: RuleWatch, *tools: str) -> RuleWatch:
    for tool in tools:
        watch.called(tool)
        watch.succeeded(tool)
    return watch


def test_without_rules_everything_is_allowed_and_nothing_ends_the_turn() -> None:
    watch = RuleWatch()

    assert (watch.refusal("x"), watch.waits("x"), watch.ends(["x"])) == (None, False, False)


def test_all_others_are_blocked_until_the_first_one_succeeded() -> None:
    watch = RuleWatch([ToolRule.start_constraint("context")])

    assert watch.refusal("search") == "refused by a rule: Call `context` first before any other tools."
    watch.called("context")
    assert watch.refusal("search") is not None, "it was called, but it did not succeed"
    assert done(watch, "context").refusal("search") is None


def test_two_first_ones_do_not_block_each_other() -> None:
    watch = RuleWatch([ToolRule.start_constraint("a"), ToolRule.start_constraint("b")])

    assert (watch.refusal("a"), watch.refusal("b")) == (None, None)
    assert done(watch, "a").refusal("c") is not None
    assert done(watch, "b").refusal("c") is None


def test_a_tool_waits_for_the_success_of_another() -> None:
    watch = RuleWatch([ToolRule.requires_prior("send", "draft")])

    assert watch.refusal("send") == "refused by a rule: Call `send` only after calling `draft`."
    assert watch.refusal("other") is None
    assert done(watch, "draft").refusal("send") is None


def test_calls_are_counted_whether_they_succeed_or_not() -> None:
    watch = RuleWatch([ToolRule.max_calls("look", 2)])
    watch.called("look")
    done(watch, "look")

    assert watch.refusal("look") == "refused by a rule: Call `look` at most 2 times."
    assert watch.refusal("other") is None


@pytest.mark.parametrize(
    ("tools", "ends"),
    [(["send"], True), (["search"], False), (["send", "search"], False), (["other"], False), ([], False)],
)
def test_a_turn_ends_with_a_tool_that_ends_it_unless_another_goes_on(tools: list[str], ends: bool) -> None:
    watch = RuleWatch([ToolRule.exit_loop("send"), ToolRule.continue_loop("search")])

    assert watch.ends(tools) is ends


def test_rules_that_nobody_can_follow_are_named() -> None:
    watch = RuleWatch([ToolRule.start_constraint("gone"), ToolRule.requires_prior("a", "b")])

    assert watch.unmet(["a", "b"]) == [
        "The rule 'Call `gone` first before any other tools' cannot be followed: there is no tool 'gone'."
    ]
