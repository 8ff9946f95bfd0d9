"""Consent: `Partner` asks the owner of the assistant, `Human` whoever is in the conversation."""

import asyncio
from typing import Any

import weft
from weft.memory.permission import Action, ConsentRequest
from weft.tools.builtin import _Consent
from weft.types.request import Caller
from wired import Wire, calling, gateway, said

REMEMBERED = "Remembered in about: likes tea (/undo takes it back)"


def appending() -> weft.Reply:
    return calling("memory_append", label="about", text="likes tea")


async def prepared(app: weft.Assistant, permission: weft.Permission) -> None:
    memory = (await app.store.get()).memory
    await memory.create_block("weft/telegram:7", "about", permission=permission)
    await memory.update_block_text("weft/telegram:7", "about", "Ada", is_system=True)


async def about(app: weft.Assistant) -> str | None:
    return await (await app.store.get()).memory.get_rendered_content("weft/telegram:7", "about")


async def with_owner_on_telegram(made: Any, app: weft.Assistant, wire: Wire) -> None:
    """Let 8 be the owner, who has written before."""
    await (await app.store.get()).people.link("telegram:8", "owner")
    await made.submit(said("hello", 100, sender="8"))
    await wire.wait(1)


async def test_P17_partner_asks_the_owner_of_the_assistant_and_nobody_else() -> None:
    wire, model = Wire(), weft.ScriptedProvider(["Hi, owner.", appending(), "done"])
    async with gateway(model, wire) as (made, app):
        await with_owner_on_telegram(made, app, wire)
        await prepared(app, weft.Permission.PARTNER)
        await made.submit(said("remember that I like tea"))
        question, yes, _ = await asyncio.wait_for(wire.questions.get(), 30)
        await made.submit(said(yes, 2))  # whoever talks cannot agree for the partner
        assert await about(app) == "Ada"
        await made.submit(said(yes, 101, sender="8"))
        assert (await wire.wait(3))[1:] == [
            ("7", f"done\n\n{REMEMBERED}"),
            ("7", "I am not asking you anything at the moment."),
        ]
        assert await about(app) == "Ada\nlikes tea"
    assert question.startswith("For telegram:7: May I add to the memory block “about”?")


async def test_P17_the_owner_agrees_in_their_own_conversation() -> None:
    wire, model = Wire(), weft.ScriptedProvider(["Hi.", appending(), "done"])
    async with gateway(model, wire) as (made, app):
        await with_owner_on_telegram(made, app, wire)
        memory = (await app.store.get()).memory
        await memory.create_block("weft", "about", permission=weft.Permission.PARTNER)
        await made.submit(said("remember that I like tea", 101, sender="8"))
        _, yes, _ = await asyncio.wait_for(wire.questions.get(), 30)
        await made.submit(said(yes, 102, sender="8"))
        await wire.wait(2)
        assert await memory.get_rendered_content("weft", "about") == "likes tea"


async def test_P17_an_owner_who_cannot_be_reached_has_not_agreed() -> None:
    wire, model = Wire(), weft.ScriptedProvider([appending(), "I did not."])
    async with gateway(model, wire) as (made, app):
        await prepared(app, weft.Permission.PARTNER)
        await made.submit(said("remember that I like tea"))

        assert await wire.wait(1) == [("7", "I did not.")]
        assert await about(app) == "Ada"
    assert "ask its owner to agree first" in model.requests[1].to_messages()[-1].content


async def test_P17_by_a_setting_the_turn_continues_without_and_the_owner_reads_what_was_wanted() -> None:
    wire, model = Wire(), weft.ScriptedProvider(["Hi, owner.", appending(), "I did not."])
    async with gateway(model, wire, owner_consent="continue") as (made, app):
        await with_owner_on_telegram(made, app, wire)
        await prepared(app, weft.Permission.PARTNER)
        await made.submit(said("remember that I like tea"))

        _, *later = await wire.wait(3)
        assert ("7", "I did not.") in later
        [told] = [text for place, text in later if place == "8"]
        assert told.startswith("Not done without you.\n\nFor telegram:7: May I add to")
        assert "likes tea" in told
        assert await about(app) == "Ada"


async def test_P17_human_asks_whoever_is_in_the_conversation() -> None:
    wire, model = Wire(), weft.ScriptedProvider(["Hi, owner.", appending(), "done"])
    async with gateway(model, wire) as (made, app):
        await with_owner_on_telegram(made, app, wire)
        await prepared(app, weft.Permission.HUMAN)
        await made.submit(said("remember that I like tea"))
        question, yes, _ = await asyncio.wait_for(wire.questions.get(), 30)
        await made.submit(said(yes, 2))
        assert (await wire.wait(2))[1] == ("7", f"done\n\n{REMEMBERED}")
    assert question.startswith("May I add to the memory block “about”?")


async def test_P17_who_agreed_to_the_call_is_not_asked_twice_but_the_owner_is_asked_for_partner() -> None:
    asked: list[str] = []

    async def ask_owner(question: str) -> bool:
        asked.append(question)
        return False

    def consent(person: str) -> _Consent:
        caller = Caller(channel="telegram", sender_id="7", person=person, agreed=True, ask_owner=ask_owner)
        return _Consent(caller, "a line")

    def wanted(permission: weft.Permission) -> ConsentRequest:
        return ConsentRequest(label="notes", action=Action.APPEND, permission=permission)

    assert await consent("ada").ask(wanted(weft.Permission.HUMAN))
    assert await consent("owner").ask(wanted(weft.Permission.PARTNER))
    assert asked == []
    assert not await consent("ada").ask(wanted(weft.Permission.PARTNER))
    assert len(asked) == 1
