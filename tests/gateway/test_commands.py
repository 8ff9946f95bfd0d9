"""Commands: handled before any model is asked."""

from collections.abc import AsyncIterator

import pytest

import weft
from talking import Talk
from weft.gateway.commands import COMMANDS, is_command


@pytest.fixture
async def talk() -> AsyncIterator[Talk]:
    app = await weft.connect(provider=weft.ScriptedProvider(["Hello.", "Again."]))
    yield Talk(app)
    await app.close()


@pytest.mark.parametrize(
    ("text", "yes"),
    [
        ("/help", True),
        (" /new ", True),
        ("/model x", True),
        ("/usr/bin", False),
        ("/", False),
        ("a /b", False),
    ],
)
def test_a_command_is_a_slash_and_a_word(text: str, yes: bool) -> None:
    assert is_command(text) is bool(yes)


async def test_help_names_every_command(talk: Talk) -> None:
    told = await talk.say("/help")

    assert [name for name in COMMANDS if f"`/{name}`" not in told] == []


async def test_an_unknown_command_suggests_the_nearest(talk: Talk) -> None:
    with pytest.raises(weft.ConfigError, match="There is no command '/contxt': did you mean '/context'"):
        await talk.say("/contxt")


async def test_the_case_of_a_command_does_not_matter(talk: Talk) -> None:
    assert await talk.say("/FACTS") == await talk.say("/facts") == "I know nothing about you yet."


async def test_the_argument_of_a_command_may_stand_on_the_next_line(talk: Talk) -> None:
    assert await talk.say("/context\nfull") == await talk.say("/context full")


async def test_a_new_session_begins_empty_and_the_old_one_is_kept(talk: Talk) -> None:
    await talk.say("hi")
    before = talk.session

    await talk.say("/new")

    assert talk.session != before
    assert await talk.newest() == []
    store = await talk.app.store.get()
    assert len(await store.messages.all(before)) == 2


async def test_the_context_is_shown_by_layer_or_as_it_is(talk: Talk) -> None:
    await talk.say("hi")

    table = await talk.say("/context")
    full = await talk.say("/context full")

    assert "| history |" in table
    assert "[Assistant]\nHello." in full
    with pytest.raises(weft.ConfigError, match="it takes `full`, or nothing"):
        await talk.say("/context half")


async def test_the_receipt_is_that_of_the_last_answer(talk: Talk) -> None:
    assert await talk.say("/receipt") == "Nothing was answered yet."

    await talk.say("hi")
    first = await talk.say("/receipt")
    await talk.say("and now?")
    second = await talk.say("/receipt")

    assert "| message |" in first
    assert "| history |" not in first
    assert "| history |" in second, "the last answer had a history"


async def test_of_many_left_out_lines_the_receipt_names_a_few_and_counts_the_rest(talk: Talk) -> None:
    await talk.say("hi")
    store = await talk.app.store.get()
    items = [
        weft.ReceiptItem(
            layer="recall", source="recall", title=f"line {n}", tokens=20, kept=False, reason="no room"
        )
        for n in range(76)
    ]
    turn = await store.turns.begin(talk.session, "What?")
    await store.turns.finish(
        turn, weft.Receipt(items=tuple(items)), weft.Message(role="user", content="What?")
    )

    lines = [line for line in (await talk.say("/receipt")).splitlines() if "no room" in line]

    assert lines[:3] == [f"- left out line {n} (20): no room" for n in range(3)]
    assert lines[3:] == ["- and 73 more of recall, 1,460 tokens: no room"]


async def test_the_tools_are_listed(talk: Talk) -> None:
    assert "- `memory_append` Remember something for good" in await talk.say("/tools")


async def test_a_model_given_by_a_program_answers_by_its_name(talk: Talk) -> None:
    assert await talk.say("/model") == "scripted answers with `scripted`."


async def test_the_model_can_be_changed_in_the_middle_of_a_conversation(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")

    told = await talk.say("/model anthropic:claude-haiku-4-5")
    place = "`claude-haiku-4-5` at https://api.anthropic.com"
    assert told == f"anthropic answers with {place}, which reads 200,000 tokens."
    await talk.say("/model claude-opus-4-1")
    assert "anthropic answers with `claude-opus-4-1`" in await talk.say("/model")
    await talk.say("/model scripted")
    assert await talk.say("hi") == "This reply was scripted: no model was asked."


async def test_a_provider_that_is_misspelt_is_not_taken_for_a_model(talk: Talk) -> None:
    with pytest.raises(weft.ConfigError, match="There is no provider 'olama': did you mean 'ollama'"):
        await talk.say("/model olama")
    with pytest.raises(weft.ConfigError, match="did you mean 'anthropic'"):
        await talk.say("/model antropic:claude-haiku-4-5")


async def test_a_provider_without_a_key_is_refused_in_words(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)

    with pytest.raises(weft.ConfigError, match="openai needs a key"):
        await talk.say("/model openai")
    assert await talk.say("/model") == "scripted answers with `scripted`."
