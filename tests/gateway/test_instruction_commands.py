"""`/always` and `/instructions`: a person pins, lists and removes what the assistant must always do."""

from collections.abc import AsyncIterator

import pytest

import weft
from talking import Talk
from weft.gateway.standing import change_of


@pytest.fixture
async def talk() -> AsyncIterator[Talk]:
    app = await weft.connect(provider=weft.ScriptedProvider(["Vale."] * 60))
    yield Talk(app)
    await app.close()


async def test_always_pins_a_text_and_instructions_lists_it_beside_the_recognized_ones(talk: Talk) -> None:
    assert (
        await talk.say("/instructions") == "You gave no standing instructions yet: `/always TEXT` adds one."
    )
    assert "`/always TEXT`" in await talk.say("/always")

    await talk.say("Never call me Bob.")
    assert await talk.say("/always Use km") == "From now on, pinned: Use km (/undo takes it back)"

    lines = (await talk.say("/instructions")).splitlines()
    assert lines[0].startswith("1. Never call me Bob. (recognized, 20")
    assert lines[1].startswith("2. Use km (pinned, 20")
    assert lines[-1] == "`/instructions remove NUMBER` removes one."


async def test_a_polite_question_sets_a_rule_and_one_of_two_lines_is_listed_on_one(talk: Talk) -> None:
    await talk.say("Could you always answer in short sentences?")
    await talk.say("/always Use km.\nUse metric tons.")

    lines = (await talk.say("/instructions")).splitlines()
    assert lines[0].startswith("1. Could you always answer in short sentences? (recognized, 20")
    assert lines[1].startswith("2. Use km. Use metric tons. (pinned, 20")


async def test_a_number_or_an_id_removes_one_and_undo_brings_it_back(talk: Talk) -> None:
    await talk.say("/always One")
    await talk.say("/always Two")

    assert await talk.say("/instructions remove 1") == "Removed: One (/undo brings it back)"
    assert await talk.say("/undo") == "The standing instruction “One” holds again."
    assert (await talk.say("/instructions")).startswith("1. One")


@pytest.mark.parametrize("rest", ["remove", "drop 1", "remove ", "1"])
async def test_a_wrong_argument_is_one_sentence_with_a_remedy(talk: Talk, rest: str) -> None:
    with pytest.raises(weft.ConfigError, match="it takes `remove NUMBER`, or nothing to list them"):
        await talk.say(f"/instructions {rest}")


async def test_an_unknown_number_names_the_list(talk: Talk) -> None:
    with pytest.raises(weft.StoreError, match="There is no standing instruction '3': `/instructions`"):
        await talk.say("/instructions remove 3")


async def test_what_is_not_shown_for_lack_of_room_says_so_and_a_full_list_refuses_a_pin(talk: Talk) -> None:
    store = await talk.app.store.get()
    for number in range(39):
        await talk.say(f"/always Rule {number}")
    await talk.say("Never call me Bob.")
    await talk.say("Never call me Rob.")
    listed = (await talk.say("/instructions")).splitlines()
    assert "(recognized, not shown for lack of room, 20" in listed[39]
    assert "(recognized, 20" in listed[40]

    await talk.say("/always The last")
    with pytest.raises(weft.StoreError, match="40 is the most: remove one of them first"):
        await talk.say("/always One too many")
    before = len(await store.instructions.list("terminal:owner"))
    await talk.say("Never call me Jim.")
    assert len(await store.instructions.list("terminal:owner")) == before, "there was no room to show it"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Always answer in Spanish.", "from now on: always answer in Spanish"),
        ("From now on, answer in Spanish!", "from now on: answer in Spanish"),
        ("Nenn mich nie Bob.", "from now on: Nenn mich nie Bob"),
        ("以后请用中文回答。", "from now on: 以后请用中文回答"),
    ],
)
def test_the_few_words_for_the_person_do_not_say_from_now_on_twice(text: str, words: str) -> None:
    assert change_of(text) == words
