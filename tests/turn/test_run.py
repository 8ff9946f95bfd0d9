"""One turn, from the message to what is remembered."""

from collections.abc import AsyncGenerator
from dataclasses import replace

import pytest

import weft
from weft.store.plain import PlainMessages
from weft.turn.run import Turn, run_turn

from samples import user

Event = weft.Reading | weft.TextDelta | weft.Done


def turn(provider: weft.ScriptedProvider, log: PlainMessages | None = None, session: str = "s") -> Turn:
    builder = weft.ContextBuilder(recipe="omega").with_session(session)
    if log is not None:
        builder = builder.with_messages(log)
    return Turn(builder=builder, provider=provider, log=log, session_id=session)


async def run(given: Turn, message: str = "hi") -> list[Event]:
    return [event async for event in run_turn(given, message)]


async def reply_to(given: Turn, message: str = "hi") -> weft.Reply:
    done = (await run(given, message))[-1]
    assert isinstance(done, weft.Done)
    return done.reply


async def test_the_answer_comes_in_pieces_and_ends_with_the_reply() -> None:
    events = await run(turn(weft.ScriptedProvider(["Hello there."])))

    assert events[:-1] == [weft.TextDelta("Hello "), weft.TextDelta("there.")]
    assert isinstance(events[-1], weft.Done)
    assert events[-1].reply.text == "Hello there."


async def test_both_sides_are_remembered_once() -> None:
    log = PlainMessages()

    await run(turn(weft.ScriptedProvider(["Hello."]), log), "hi there")

    assert [(m.role, m.content, m.origin) for m in await log.all("s")] == [
        ("user", "hi there", "user"),
        ("assistant", "Hello.", "agent"),
    ]


async def test_the_next_turn_sees_the_last_one_and_the_message_only_once() -> None:
    log = PlainMessages()
    provider = weft.ScriptedProvider(["Hello.", "Again."])

    await run(turn(provider, log), "one")
    await run(turn(provider, log), "two")

    assert [(m.role, m.content) for m in provider.requests[1].history] == [
        ("user", "one"),
        ("assistant", "Hello."),
    ]
    assert provider.requests[1].current_message == "two"
    assert len(await log.all("s")) == 4


async def test_calls_and_signed_matter_of_the_reply_are_remembered_with_it() -> None:
    log = PlainMessages()
    call = weft.ToolCall(id="1", name="look_up", arguments={"q": "tide"})
    reply = weft.Reply(text="", tool_calls=(call,), provider_data={"signature": "x"})

    await run(turn(weft.ScriptedProvider([reply]), log))

    asked, answered = await log.all("s")
    assert replace(answered, timestamp=None) == weft.Message(
        role="assistant", content="", tool_calls=(call,), origin="agent", provider_data={"signature": "x"}
    )
    assert answered.timestamp == asked.timestamp is not None


async def test_both_sides_are_appended_together() -> None:
    appended: list[int] = []

    class Noting(PlainMessages):
        async def append(self, session_id: str, *messages: weft.Message) -> None:
            appended.append(len(messages))
            await super().append(session_id, *messages)

    await run(turn(weft.ScriptedProvider(["Hello."]), Noting()))

    assert appended == [2]


async def test_they_are_remembered_before_the_end_is_told() -> None:
    log = PlainMessages()

    async for event in run_turn(turn(weft.ScriptedProvider(["Hello."]), log), "hi"):
        if isinstance(event, weft.Done):
            assert len(await log.all("s")) == 2
            break
        assert await log.all("s") == []


@pytest.mark.parametrize("session", ["", "s"])
async def test_without_a_session_or_a_log_nothing_is_remembered(session: str) -> None:
    log = PlainMessages()
    given = turn(weft.ScriptedProvider(["Hello."]), None if session else log, session)

    reply = await reply_to(given)

    assert reply.text == "Hello."
    assert await log.all(session) == []


async def test_the_receipt_knows_who_answered_why_and_at_what_cost() -> None:
    usage = weft.Usage(input_tokens=11, output_tokens=2, cached_tokens=5)
    info = weft.ModelInfo(id="small", provider="me")
    provider = weft.ScriptedProvider([weft.Reply(text="Hello.", usage=usage)], info=info)
    builder = weft.ContextBuilder(recipe="omega")

    reply = await reply_to(Turn(builder=builder, provider=provider, provider_reason="it was asked for"))

    receipt = reply.receipt
    assert receipt is not None
    assert (receipt.provider, receipt.model, receipt.provider_reason) == ("me", "small", "it was asked for")
    assert receipt.usage == usage
    assert receipt.total_tokens == sum(item.tokens for item in receipt.items if item.kept) > 0


async def test_the_provider_is_shown_a_receipt_that_names_it_but_no_cost_yet() -> None:
    provider = weft.ScriptedProvider(["Hello."])

    await run(turn(provider))

    [asked] = provider.requests
    assert asked.receipt is not None
    assert (asked.receipt.provider, asked.receipt.usage) == ("scripted", None)


async def test_an_error_of_the_provider_leaves_nothing_in_the_log() -> None:
    log = PlainMessages()
    provider = weft.ScriptedProvider([weft.ProviderError("busy"), "Hello."])

    with pytest.raises(weft.ProviderError, match="busy"):
        await run(turn(provider, log))
    assert await log.all("s") == []

    await run(turn(provider, log), "again")

    assert [m.content for m in await log.all("s")] == ["again", "Hello."]


class Stream(weft.ScriptedProvider):
    """Speaks, and then does as it is told; `closed` says whether the stream was ended."""

    def __init__(self, then: BaseException | None = None) -> None:
        super().__init__()
        self.then, self.closed = then, False

    async def stream(self, context: weft.Context) -> AsyncGenerator[Event]:
        try:
            yield weft.TextDelta("Hel")
            yield weft.TextDelta("lo.")
            if self.then is not None:
                raise self.then
        finally:
            self.closed = True


async def test_an_answer_that_breaks_in_the_middle_leaves_nothing_in_the_log() -> None:
    log = PlainMessages()

    with pytest.raises(weft.ProviderError, match="broke"):
        await run(turn(Stream(weft.ProviderError("broke")), log))

    assert await log.all("s") == []


async def test_an_answer_that_ends_without_a_reply_leaves_nothing_in_the_log() -> None:
    log = PlainMessages()

    events = await run(turn(Stream(), log))

    assert not any(isinstance(event, weft.Done) for event in events)
    assert await log.all("s") == []


async def test_a_turn_that_is_given_up_ends_the_stream_of_the_provider_and_leaves_nothing() -> None:
    log, provider = PlainMessages(), Stream()
    events = run_turn(turn(provider, log), "hi")
    assert isinstance(events, AsyncGenerator)
    await anext(events)

    await events.aclose()

    assert provider.closed
    assert await log.all("s") == []


@pytest.mark.parametrize("message", ["", "  ", "\n"])
async def test_an_empty_message_reaches_no_provider_and_no_log(message: str) -> None:
    log, provider = PlainMessages(), weft.ScriptedProvider(["Hello."])

    with pytest.raises(weft.EmptyMessage):
        await run(turn(provider, log), message)

    assert (provider.requests, await log.all("s")) == ([], [])


async def test_a_context_that_cannot_be_built_reaches_no_provider() -> None:
    provider = weft.ScriptedProvider(["Hello."])
    builder = weft.ContextBuilder(recipe="pattern").with_messages(
        [weft.Message(role="narrator", content="x")]
    )

    with pytest.raises(weft.ContextError):
        await run(Turn(builder=builder, provider=provider))

    assert provider.requests == []


async def test_a_history_that_the_caller_holds_is_shown_but_not_written_to() -> None:
    history = [user("before")]
    provider = weft.ScriptedProvider(["Hello."])
    builder = weft.ContextBuilder(recipe="omega").with_messages(history)

    await run(Turn(builder=builder, provider=provider))

    assert [m.content for m in provider.requests[0].history] == ["before"]
    assert history == [user("before")]
