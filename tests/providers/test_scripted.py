"""The public fake: it answers what it was told to, and remembers what it was asked."""

from collections.abc import AsyncGenerator

import pytest

import weft
from weft.providers.base import collected
from weft.types.reply import Event

HI = weft.Context.new("hi")


async def test_replies_come_one_after_another_and_requests_are_remembered() -> None:
    provider = weft.ScriptedProvider(["one", "two"])
    second = weft.Context.new("again")

    assert (await provider.complete(HI)).text == "one"
    assert (await provider.complete(second)).text == "two"

    assert provider.requests == [HI, second]


@pytest.mark.parametrize("text", ["one two  three\n", " lead", "\n\n", "word", "", "Ω 🐙"])
async def test_text_is_streamed_word_by_word_and_nothing_is_lost(text: str) -> None:
    *deltas, done = [event async for event in weft.ScriptedProvider([text]).stream(HI)]

    assert isinstance(done, weft.Done)
    assert "".join(d.text for d in deltas if isinstance(d, weft.TextDelta)) == done.reply.text == text
    assert all(isinstance(d, weft.TextDelta) and d.text for d in deltas)
    assert len(deltas) == max(len(text.split()) + text[:1].isspace(), 0)


async def test_a_whole_reply_is_given_as_it_is() -> None:
    call = weft.ToolCall(id="1", name="look_up")
    reply = weft.Reply(text="Looking.", tool_calls=(call,), stop_reason="tool_calls", model="m")

    assert await weft.ScriptedProvider([reply]).complete(HI) is reply


async def test_an_exception_in_the_script_is_raised_and_the_script_goes_on() -> None:
    provider = weft.ScriptedProvider([weft.ProviderError("busy"), "now"])

    with pytest.raises(weft.ProviderError, match="busy"):
        await provider.complete(HI)

    assert (await provider.complete(HI)).text == "now"
    assert len(provider.requests) == 2


async def test_a_script_that_has_ended_says_so() -> None:
    provider = weft.ScriptedProvider(["one"])
    await provider.complete(HI)

    with pytest.raises(weft.ProviderError, match=r"no reply for request 2: add one to the script"):
        await provider.complete(HI)


async def test_an_empty_message_is_refused_and_uses_up_no_reply() -> None:
    provider = weft.ScriptedProvider(["one"])

    with pytest.raises(weft.EmptyMessage):
        await provider.complete(weft.Context(current_message=" "))

    assert provider.requests == []
    assert (await provider.complete(HI)).text == "one"


async def test_usage_counts_what_the_receipt_says_was_shown() -> None:
    item = weft.ReceiptItem(layer="message", source="message", tokens=7, kept=True)
    context = weft.Context(current_message="hi", receipt=weft.Receipt(items=(item,)))

    reply = await weft.ScriptedProvider(["x" * 40]).complete(context)

    assert reply.usage == weft.Usage(input_tokens=7, output_tokens=10)
    assert reply.model == "scripted"


def test_a_model_of_ones_own_can_be_played() -> None:
    info = weft.ModelInfo(id="small", provider="me", max_tokens=100)

    assert weft.ScriptedProvider(info=info).info is info
    assert weft.ScriptedProvider().info == weft.ModelInfo(id="scripted", provider="scripted")


async def test_it_can_be_closed_and_asked_again() -> None:
    provider = weft.ScriptedProvider(["one"])

    await provider.close()

    assert (await provider.complete(HI)).text == "one"


async def test_a_stream_without_an_end_is_an_error_that_says_so() -> None:
    async def broken_off() -> AsyncGenerator[Event]:
        yield weft.TextDelta("Hel")

    with pytest.raises(weft.ProviderError, match="broke off"):
        await collected(broken_off())
