"""Random histories by the thousand; `make fuzz` runs a million."""

import wire_fuzz as fuzz
from weft.wire import repair


def test_no_random_history_makes_a_request_that_is_refused() -> None:
    assert fuzz.run(seed=20261116, count=3000) == []


def test_the_random_histories_are_not_tame() -> None:
    """Most of them need repair, in every way that there is."""
    contexts = [context for _, context, _ in fuzz.cases(seed=1, count=600)]
    notes = {
        note.split("'")[0]
        for context in contexts
        for note in repair("anthropic", context.to_api_messages()[1])[1]
    }

    assert len(notes) >= 6
