"""Which instruction a number or the start of an id means."""

from weft.types.instruction import StandingInstruction, numbered_instruction

ONE, TWO = StandingInstruction(id="2a01", text="One"), StandingInstruction(id="777b02", text="Two")


def test_a_few_digits_are_a_number_of_the_list_even_if_an_id_begins_so() -> None:
    assert numbered_instruction([ONE], "2") is None
    assert numbered_instruction([ONE, TWO], " 2 ") == TWO
    assert numbered_instruction([ONE, TWO], "777") is None


def test_the_start_of_an_id_means_its_instruction() -> None:
    assert numbered_instruction([ONE, TWO], "777B") == TWO
    assert numbered_instruction([ONE, TWO], "9") is None
