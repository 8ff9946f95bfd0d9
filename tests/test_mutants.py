"""Ten breaks of the code, chosen anew each time: the tests of the lines that they belong to notice them."""

import pytest

import mutate


def test_every_function_that_serves_a_line_can_be_broken_and_every_line_has_tests() -> None:
    mutants = mutate.plan()

    assert len(mutants) >= 200
    assert {mutant.line_id for mutant in mutants} == {line_id for line_id, code in mutate.lines() if code}
    assert all(mutate.tests_of(line_id) for line_id, _ in mutate.lines())


@pytest.mark.parametrize("number", range(10))
def test_a_break_that_is_chosen_anew_is_noticed_by_the_tests_of_its_line(number: int) -> None:
    [(mutant, caught)] = mutate.run(mutate.sample(1), workers=1)

    assert caught, f"no test of {mutant.line_id} notices: {mutant.name}"
