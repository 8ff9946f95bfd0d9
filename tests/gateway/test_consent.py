"""A block that wants a person to agree: they are asked where they are, and only their yes changes it."""

import asyncio

import pytest

import weft
from wired import Wire, calling, gateway, said


def appending(text: str = "likes tea", number: int = 1) -> weft.Reply:
    return calling("memory_append", number, label="about", text=text)


REMEMBERED = "Remembered in about: likes tea (/undo takes it back)"


async def prepared(
    app: weft.Assistant, permission: weft.Permission = weft.Permission.HUMAN, *, sender: str = "7"
) -> None:
    memory = (await app.store.get()).memory
    await memory.create_block(f"weft/telegram:{sender}", "about", permission=permission)
    await memory.update_block_text(f"weft/telegram:{sender}", "about", "Ada", is_system=True)


async def about(app: weft.Assistant, sender: str = "7") -> str | None:
    return await (await app.store.get()).memory.get_rendered_content(f"weft/telegram:{sender}", "about")


@pytest.mark.parametrize("answer", ["/yes {id}", "yes", "Y", "/YES"])
async def test_a_yes_lets_the_change_through(answer: str) -> None:
    wire = Wire()
    async with gateway(weft.ScriptedProvider([appending(), "done"]), wire) as (made, app):
        await prepared(app)
        await made.submit(said("remember that I like tea"))
        question, yes, _ = await asyncio.wait_for(wire.questions.get(), 30)
        await made.submit(said(answer.format(id=yes.split()[1]), 2))

        assert await wire.wait(1) == [("7", f"done\n\n{REMEMBERED}")]
        assert await about(app) == "Ada\nlikes tea"
    assert "add to the memory block “about”" in question
    assert "likes tea" in question


async def test_a_no_leaves_the_block_as_it_is_and_the_model_is_told() -> None:
    wire, model = Wire(), weft.ScriptedProvider([appending(), "I did not."])
    async with gateway(model, wire) as (made, app):
        await prepared(app)
        await made.submit(said("remember that I like tea"))
        await asyncio.wait_for(wire.questions.get(), 30)
        await made.submit(said("no", 2))

        assert await wire.wait(1) == [("7", "I did not.")]
        assert await about(app) == "Ada"
    assert "ask a person to agree first" in model.requests[1].to_messages()[-1].content


async def test_silence_is_a_no() -> None:
    wire = Wire()
    model = weft.ScriptedProvider([appending(), "I did not."])
    async with gateway(model, wire, consent_seconds=0.01) as (made, app):
        await prepared(app)
        await made.submit(said("remember that I like tea"))

        assert await wire.wait(1) == [("7", "I did not.")]
        assert await about(app) == "Ada"


async def test_only_the_person_asked_can_agree_and_an_old_button_means_nothing() -> None:
    wire, model = Wire(), weft.ScriptedProvider([appending(), "hello", "done"])
    async with gateway(model, wire) as (made, app):
        await prepared(app)
        await made.submit(said("remember that I like tea"))
        await asyncio.wait_for(wire.questions.get(), 30)
        await made.submit(said("/yes", 1, sender="8"))
        assert await wire.wait(1) == [("8", "I am not asking you anything at the moment.")]
        await made.submit(said("/yes 00000000", 2))
        assert await about(app) == "Ada"
        await made.submit(said("no", 3))

        told = [text for place, text in await wire.wait(3) if place == "7"]
        assert await about(app) == "Ada"

    assert told == ["hello", "I am not asking you anything at the moment."]


async def test_two_changes_at_once_are_asked_for_one_after_the_other() -> None:
    wire = Wire()
    calls = (*appending("one", 1).tool_calls, *appending("two", 2).tool_calls)
    both = weft.Reply(text="", tool_calls=calls, stop_reason="tools")
    async with gateway(weft.ScriptedProvider([both, "done"]), wire) as (made, app):
        await prepared(app)
        await made.submit(said("remember both"))
        for number in (2, 3):
            await asyncio.wait_for(wire.questions.get(), 30)
            assert wire.questions.empty()
            await made.submit(said("yes", number))
        await wire.wait(1)

        assert await about(app) == "Ada\none\ntwo"


async def test_a_question_that_cannot_be_asked_is_a_no() -> None:
    wire = Wire()
    async with gateway(weft.ScriptedProvider([appending(), "I did not."]), wire) as (made, app):
        await prepared(app)
        wire.trouble.append(weft.ChannelError("The line is down."))
        await made.submit(said("remember that I like tea"))

        assert await wire.wait(1) == [("7", "I did not.")]
        assert await about(app) == "Ada"


async def test_a_server_that_stops_does_not_wait_for_an_answer() -> None:
    wire = Wire()
    async with gateway(weft.ScriptedProvider([appending(), "I did not."]), wire) as (made, app):
        await prepared(app)
        await made.submit(said("remember that I like tea"))
        await asyncio.wait_for(wire.questions.get(), 30)

        await asyncio.wait_for(made.stop(), 30)
        assert await about(app) == "Ada"
    assert wire.sent == [("7", "I did not.")]


class SlowToAsk(Wire):
    """Its questions take a while to arrive."""

    def __init__(self) -> None:
        super().__init__()
        self.asking, self.arrives = asyncio.Event(), asyncio.Event()

    async def ask(self, conversation: str, question: str, *, yes: str, no: str) -> None:
        self.asking.set()
        await self.arrives.wait()
        await super().ask(conversation, question, yes=yes, no=no)


async def test_a_yes_to_a_question_that_nobody_saw_yet_is_no_consent() -> None:
    wire, model = SlowToAsk(), weft.ScriptedProvider([appending(), "I did not.", "what?"])
    async with gateway(model, wire) as (made, app):
        await prepared(app)
        await made.submit(said("go on"))
        await wire.asking.wait()
        await made.submit(said("yes", 2))  # to what was said before
        wire.arrives.set()
        await asyncio.wait_for(wire.questions.get(), 30)
        await made.submit(said("no", 3))

        assert [text for _, text in await wire.wait(2)] == ["I did not.", "what?"]
        assert await about(app) == "Ada"


async def test_a_question_to_one_person_does_not_block_a_question_to_another() -> None:
    wire, model = Wire(), weft.ScriptedProvider([appending("one"), appending("two"), "done", "done"])
    async with gateway(model, wire) as (made, app):
        await prepared(app)
        await prepared(app, sender="8")
        await made.submit(said("of seven"))
        await asyncio.wait_for(wire.questions.get(), 30)
        await made.submit(said("of eight", sender="8"))
        question, _, _ = await asyncio.wait_for(wire.questions.get(), 30)
        await made.submit(said("yes", 2, sender="8"))
        await made.submit(said("yes", 2))
        await wire.wait(2)

        assert (await about(app), await about(app, "8")) == ("Ada\none", "Ada\ntwo")
    assert "two" in question


async def test_a_turn_that_waits_for_consent_leaves_its_slot_to_others() -> None:
    wire, model = Wire(), weft.ScriptedProvider([appending(), "hello", "done"])
    async with gateway(model, wire, at_once=1) as (made, app):
        await prepared(app)
        await made.submit(said("remember"))
        await asyncio.wait_for(wire.questions.get(), 30)
        await made.submit(said("hi", sender="8"))
        assert await wire.wait(1) == [("8", "hello")]
        await made.submit(said("yes", 2))

        assert (await wire.wait(2))[1] == ("7", f"done\n\n{REMEMBERED}")


async def test_a_server_that_stops_asks_no_further_question() -> None:
    wire = Wire()
    calls = (*appending("one", 1).tool_calls, *appending("two", 2).tool_calls)
    both = weft.Reply(text="", tool_calls=calls, stop_reason="tools")
    async with gateway(weft.ScriptedProvider([both, "I did not."]), wire) as (made, app):
        await prepared(app)
        await made.submit(said("remember both"))
        await asyncio.wait_for(wire.questions.get(), 30)
        await asyncio.wait_for(made.stop(), 30)
        assert await about(app) == "Ada"

    assert wire.questions.empty()
    assert wire.sent == [("7", "I did not.")]


async def test_the_time_limit_of_a_tool_does_not_run_while_a_person_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]
    monkeypatch.setattr("weft.turn.act.monotonic", lambda: now[0])

    async def ask(question: str) -> bool:
        now[0] += 1000.0
        return True

    async def careful(caller: weft.Caller) -> str:
        """Asks first."""
        assert caller.ask is not None
        agreed = await caller.ask("May I?")
        await asyncio.sleep(0)  # the turn looks at the clock
        return "agreed" if agreed else "not agreed"

    model = weft.ScriptedProvider([calling("careful"), "done"])
    app = await weft.connect(provider=model, tools=[careful])
    caller = weft.Caller(agent_id="weft", channel="app", sender_id="owner", ask=ask)

    await app.ask("go", caller=caller)

    assert model.requests[1].to_messages()[-1].content == "agreed"
    await app.close()
