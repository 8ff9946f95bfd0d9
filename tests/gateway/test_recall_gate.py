"""Which costly layers a message needs, by its words."""

import pytest

from weft import ContextNeeds
from weft.gateway.recall_gate import needs_of


@pytest.mark.parametrize(
    "message",
    [
        "Do you remember the boat?",
        "As you SAID: you said six.",
        "what did we talk about? we talked yesterday",
        "¿Te acuerdas?",
        "Lembra do barco?",
        "Tu te souviens ?",
        "Erinnerst du dich?",
        "Ti ricordi?",
        "Weet je nog?",
    ],
)
def test_words_about_the_past_ask_for_recall(message: str) -> None:
    assert needs_of(message).recall


@pytest.mark.parametrize(
    "message",
    [
        "Remind me to call.",
        "What is due?",
        "my tasks",
        "set a timer",
        "¿Qué tengo mañana?",
        "Amanhã?",
        "Demain à neuf heures",
        "Morgen um neun",
        "Domani alle nove",
        "Mijn afspraak",
    ],
)
def test_words_about_plans_ask_for_tasks(message: str) -> None:
    assert needs_of(message).pending_tasks


@pytest.mark.parametrize(
    "message",
    [
        "good morning",
        "Guten Morgen!",
        "What is the residue?",
        "undue haste",
        "Who multitasks?",
        "Hello",
        "",
        "2+2",
    ],
)
def test_everything_else_asks_for_neither(message: str) -> None:
    assert needs_of(message) == ContextNeeds(recall=False, pending_tasks=False)


def test_a_gate_that_is_open_lets_everything_in_and_a_closed_one_no_recall() -> None:
    assert needs_of("hello", "always") == ContextNeeds()
    assert needs_of("do you remember?", "never") == ContextNeeds(recall=False)
