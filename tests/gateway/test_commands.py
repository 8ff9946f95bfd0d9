"""Commands: handled before any model is asked."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import weft
from weft.gateway.commands import COMMANDS, is_command, run_command
from weft.gateway.conversation import Conversation

ME = weft.Caller(agent_id="weft", channel="terminal", sender_id="owner")


@pytest.fixture
async def talk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Conversation]:
    monkeypatch.setenv("WEFT_HOME", str(tmp_path))
    app = await weft.connect(provider=weft.ScriptedProvider(["Hello.", "Again."]))
    yield await Conversation.open(app, ME, "chat")
    await app.close()


async def said(talk: Conversation, text: str) -> str:
    reply = [event async for event in talk.say(text)][-1]
    assert isinstance(reply, weft.Done)
    return reply.reply.text


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


async def test_help_names_every_command(talk: Conversation) -> None:
    told = await run_command(talk, "/help")

    assert [name for name in COMMANDS if f"`/{name}`" not in told] == []


async def test_an_unknown_command_suggests_the_nearest(talk: Conversation) -> None:
    with pytest.raises(weft.ConfigError, match="There is no command '/contxt': did you mean '/context'"):
        await run_command(talk, "/contxt")


async def test_case_does_not_matter(talk: Conversation) -> None:
    assert await run_command(talk, "/NEW") == await run_command(talk, "/new")


async def test_a_command_and_what_follows_may_stand_on_two_lines(talk: Conversation) -> None:
    assert await run_command(talk, "/context\nfull") == await run_command(talk, "/context full")


async def test_a_new_session_begins_empty_and_the_old_one_is_kept(talk: Conversation) -> None:
    await said(talk, "hi")
    before = talk.session.id

    await run_command(talk, "/new")

    assert talk.session.id != before
    assert await talk.newest(10) == []
    store = await talk.app.store.get()
    assert len(await store.messages.all(before)) == 2


async def test_the_context_is_shown_by_layer_or_as_it_is(talk: Conversation) -> None:
    await said(talk, "hi")

    table = await run_command(talk, "/context")
    full = await run_command(talk, "/context full")

    assert "| history |" in table
    assert "[Assistant]\nHello." in full
    with pytest.raises(weft.ConfigError, match="it takes `full`, or nothing"):
        await run_command(talk, "/context half")


async def test_the_receipt_is_that_of_the_last_answer(talk: Conversation) -> None:
    assert await run_command(talk, "/receipt") == "Nothing was answered yet."

    await said(talk, "hi")

    assert "| message |" in await run_command(talk, "/receipt")


async def test_the_tools_are_listed(talk: Conversation) -> None:
    assert "- `memory_append` Add text to the end of a memory block" in await run_command(talk, "/tools")


async def test_a_model_given_by_a_program_answers_by_its_name(talk: Conversation) -> None:
    assert await run_command(talk, "/model") == "scripted answers with `scripted`."


async def test_the_model_can_be_changed_in_the_middle(
    talk: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")

    told = await run_command(talk, "/model anthropic:claude-haiku-4-5")
    assert told == "anthropic answers with `claude-haiku-4-5`, which reads 200,000 tokens."
    await run_command(talk, "/model claude-opus-4-1")
    assert (talk.provider.info.provider, talk.provider.info.id) == ("anthropic", "claude-opus-4-1")
    await run_command(talk, "/model scripted")
    assert await said(talk, "hi") == "This reply was scripted: no model was asked."


async def test_a_provider_that_is_misspelt_is_not_taken_for_a_model(talk: Conversation) -> None:
    with pytest.raises(weft.ConfigError, match="There is no provider 'olama': did you mean 'ollama'"):
        await run_command(talk, "/model olama")
    with pytest.raises(weft.ConfigError, match="did you mean 'anthropic'"):
        await run_command(talk, "/model antropic:claude-haiku-4-5")


async def test_a_provider_without_a_key_is_refused_in_words(
    talk: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)

    with pytest.raises(weft.ConfigError, match="openai needs a key"):
        await run_command(talk, "/model openai")
    assert talk.provider.info.provider == "scripted"
