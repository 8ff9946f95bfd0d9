"""Which session a message goes into, and who answers there."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import weft
from weft.gateway.assistant import Assistant
from weft.gateway.commands import run_command
from weft.gateway.conversation import Conversation

ME = weft.Caller(agent_id="weft", channel="terminal", sender_id="owner")
ADA = weft.Caller(agent_id="weft", channel="telegram", sender_id="42")
BEN = weft.Caller(agent_id="weft", channel="telegram", sender_id="7")

Connect = Callable[[str], Awaitable[Assistant]]


@pytest.fixture
async def connect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Connect]:
    monkeypatch.setenv("WEFT_HOME", str(tmp_path))
    apps: list[Assistant] = []

    async def connected(recipe: str) -> Assistant:
        (tmp_path / "config.toml").write_text(f'recipe = "{recipe}"\n', "utf-8")
        apps.append(await weft.connect(provider=weft.ScriptedProvider([f"r{n}" for n in range(9)])))
        return apps[-1]

    yield connected
    for app in apps:
        await app.close()


async def said(talk: Conversation, text: str) -> None:
    async for _ in talk.say(text):
        pass


async def history(app: Assistant, session: str, caller: weft.Caller = ME) -> list[str]:
    return [m.content for m in (await app.context("next", session, caller=caller)).history]


async def test_a_look_at_a_session_by_its_name_sees_what_was_said_there(connect: Connect) -> None:
    app = await connect("weft")
    await app.ask("hi", session="boat", caller=ME)

    assert await history(app, "boat") == ["hi", "r0"]
    assert await history(app, "pier") == []
    assert len(await (await app.store.get()).sessions.list()) == 1


async def test_a_session_that_was_closed_meanwhile_leads_to_the_one_in_its_place(connect: Connect) -> None:
    app = await connect("weft")
    talk, other = await Conversation.open(app, ME, "chat"), await Conversation.open(app, ME, "chat")
    await said(talk, "one")

    await other.begin_anew()
    await said(talk, "two")

    assert [m.content for m in await other.newest(9)] == ["two", "r1"]
    assert await history(app, talk.session.id) == ["two", "r1"]


async def test_a_session_by_its_id_goes_on_even_if_it_was_closed(connect: Connect) -> None:
    app = await connect("weft")
    talk = await Conversation.open(app, ME, "chat")
    await said(talk, "one")
    first = talk.session.id
    await talk.begin_anew()

    again = await Conversation.open(app, ME, "chat", session_id=first)
    await said(again, "two")

    assert [m.content for m in await again.newest(9)] == ["one", "r0", "two", "r1"]
    assert (await Conversation.open(app, ME, "chat")).session.id == first


async def test_after_half_an_hour_omega_begins_anew_even_in_an_open_conversation(
    connect: Connect, sql: Callable[..., Any]
) -> None:
    app = await connect("omega")
    talk = await Conversation.open(app, ME, "chat")
    await said(talk, "one")

    earlier = "update sessions set active_at = active_at - ? * 60"
    sql(earlier, 29)
    assert await history(app, talk.session.id) == ["one", "r0"]
    sql(earlier, 2)
    assert await history(app, talk.session.id) == []
    await said(talk, "two")

    assert await history(app, talk.session.id) == ["two", "r1"]


async def test_the_session_of_somebody_else_cannot_be_entered_by_its_id(connect: Connect) -> None:
    app = await connect("weft")
    talk = await Conversation.open(app, ADA, "boat")
    await said(talk, "my secret")

    assert await history(app, talk.session.id, BEN) == []
    await app.ask("tell me", session=talk.session.id, caller=BEN)

    assert await history(app, talk.session.id, ADA) == ["my secret", "r0"]
    assert await history(app, talk.session.id, BEN) == ["tell me", "r1"]
    assert await history(app, talk.session.id, ME) == ["my secret", "r0"], "the owner may look"


async def test_chai_has_one_session_for_all_who_speak_in_a_conversation(connect: Connect) -> None:
    app = await connect("chai")
    await app.ask("I am Ada", session="boat", caller=ADA)

    assert await history(app, "boat", BEN) == ["I am Ada", "r0"]


async def test_a_model_by_its_name_is_one_of_the_provider_that_answers(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    talk = await Conversation.open(await connect("weft"), ME, "chat")

    for name in ("anthropic", "same-name", "openai", "same-name"):
        await run_command(talk, f"/model {name}")

    assert (talk.provider.info.provider, talk.provider.info.id) == ("openai", "same-name")


async def test_what_fails_to_end_does_not_keep_the_store_open(connect: Connect) -> None:
    app = await connect("weft")
    store = await app.store.get()

    async def close() -> None:
        raise weft.ProviderError("it does not end")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(app.provider, "close", close)
        with pytest.raises(weft.ProviderError, match="does not end"):
            await app.close()

    with pytest.raises(weft.StoreError, match="The store is closed"):
        await store.sessions.find("x")
