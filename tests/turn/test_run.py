"""One turn, from the message to what is remembered."""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import weft
from weft.turn.act import ToolLimits
from weft.turn.journal import CANCELLED
from weft.turn.run import Turn, TurnSettings, run_turn
from weft.types.reply import Event

from samples import user


async def turn(provider: weft.ScriptedProvider, store: weft.Store, **more: object) -> Turn:
    session = await store.sessions.find_or_create("app", "c", "me")
    builder = weft.ContextBuilder(recipe="omega").with_store(store).with_session(session.id)
    caller = weft.Caller(agent_id="a", channel="app", sender_id="me", session_id=session.id)
    request = weft.TurnRequest(text="hi", caller=caller, session="c")
    given = Turn(request=request, builder=builder, provider=provider, turns=store.turns)
    return replace(given, **more)  # type: ignore[arg-type]


def saying(given: Turn, message: str) -> Turn:
    return replace(given, request=replace(given.request, text=message))


async def run(given: Turn, message: str = "hi") -> list[Event]:
    first, *rest = [event async for event in run_turn(saying(given, message))]
    assert isinstance(first, weft.TurnStarted)
    return rest


async def reply_to(given: Turn, message: str = "hi") -> weft.Reply:
    done = (await run(given, message))[-1]
    assert isinstance(done, weft.Done)
    return done.reply


async def said(store: weft.Store) -> list[tuple[str, str]]:
    [session] = await store.sessions.list()
    return [(m.role, m.content) for m in await store.messages.all(session.id)]


def calling(*names: str, text: str = "") -> weft.Reply:
    calls = (weft.ToolCall(id=f"c{n}", name=name) for n, name in enumerate(names))
    return weft.Reply(text=text, tool_calls=tuple(calls), stop_reason="tools")


def tide() -> str:
    """When the tide is high."""
    return "at six"


def broken() -> str:
    raise ValueError("no moon")


def rounds(n: int) -> TurnSettings:
    return TurnSettings(limits=ToolLimits(max_rounds=n))


HI = weft.TurnRequest(text="hi")
TOOLS = weft.ToolRegistry([tide, broken])


async def test_the_answer_comes_in_pieces_and_ends_with_the_reply(store: weft.Store) -> None:
    events = await run(await turn(weft.ScriptedProvider(["Hello there."]), store))

    assert events[:-1] == [weft.TextDelta("Hello "), weft.TextDelta("there.")]
    assert isinstance(events[-1], weft.Done)
    assert events[-1].reply.text == "Hello there."


async def test_both_sides_and_the_receipt_are_remembered_once(store: weft.Store) -> None:
    reply = await reply_to(await turn(weft.ScriptedProvider(["Hello."]), store), "hi there")

    [session] = await store.sessions.list()
    assert [(m.role, m.content, m.origin) for m in await store.messages.all(session.id)] == [
        ("user", "hi there", "user"),
        ("assistant", "Hello.", "agent"),
    ]
    assert await store.turns.list(session.id) == [reply.turn_id]
    assert await store.turns.get(reply.turn_id) == reply.receipt


async def test_the_next_turn_sees_the_last_one_and_the_message_only_once(store: weft.Store) -> None:
    provider = weft.ScriptedProvider(["Hello.", "Again."])

    await run(await turn(provider, store), "one")
    await run(await turn(provider, store), "two")

    assert [(m.role, m.content) for m in provider.requests[1].history] == [
        ("user", "one"),
        ("assistant", "Hello."),
    ]
    assert provider.requests[1].current_message == "two"
    assert len(await said(store)) == 4


async def test_the_message_is_stored_before_the_model_is_asked(
    store: weft.Store, sql: Callable[..., Any]
) -> None:
    stored: list[object] = []

    class Looking(weft.ScriptedProvider):
        async def stream(self, context: weft.Context) -> AsyncGenerator[Event]:
            stored.extend(sql("select state, text from turns"))
            stored.append(await said(store))
            async for event in super().stream(context):
                yield event

    await run(await turn(Looking(["Hello."]), store))

    assert stored == [("running", "hi"), []]


async def test_calls_and_results_are_stored_before_the_model_is_asked_again(
    store: weft.Store, sql: Callable[..., Any]
) -> None:
    stored: list[list[str]] = []

    class Looking(weft.ScriptedProvider):
        async def stream(self, context: weft.Context) -> AsyncGenerator[Event]:
            stored.append([step for (step,) in sql("select message from turn_steps order by seq")])
            async for event in super().stream(context):
                yield event

    await run(await turn(Looking([calling("tide"), "Six."]), store, tools=TOOLS))

    before, after = stored
    assert before == []
    steps = [weft.Message.from_json(step) for step in after]
    assert [(step.role, step.content) for step in steps] == [("assistant", ""), ("tool", "at six")]
    assert sql("select * from turn_steps") == [], "the log has them now"


async def test_a_call_is_run_and_the_model_is_asked_again_with_its_result(store: weft.Store) -> None:
    provider = weft.ScriptedProvider([calling("tide", text="Let me look."), "High tide is at six."])

    events = await run(await turn(provider, store, tools=TOOLS), "tide?")

    call = weft.ToolCall(id="c0", name="tide")
    assert [e for e in events if isinstance(e, weft.ToolStarted | weft.ToolFinished)] == [
        weft.ToolStarted(call),
        weft.ToolFinished(call, "at six"),
    ]
    first, second = provider.requests
    assert [tool.name for tool in first.tools] == ["tide", "broken"]
    assert (first.steps, second.tools) == ((), first.tools)
    assert [(m.role, m.content) for m in second.to_messages()[-3:]] == [
        ("user", "tide?"),
        ("assistant", "Let me look."),
        ("tool", "at six"),
    ]
    assert await said(store) == [
        ("user", "tide?"),
        ("assistant", "Let me look."),
        ("tool", "at six"),
        ("assistant", "High tide is at six."),
    ]


async def test_the_request_with_steps_is_valid_for_every_provider(store: weft.Store) -> None:
    provider = weft.ScriptedProvider([calling("tide", "tide"), calling("gone"), "At six."])

    await run(await turn(provider, store, tools=TOOLS), "tide?")

    for name in weft.wire.PROVIDERS:
        payload = weft.wire.to_wire(name, provider.requests[-1])
        assert weft.wire.violations(name, payload) == []


async def test_a_tool_that_fails_or_is_not_there_is_told_to_the_model(store: weft.Store) -> None:
    provider = weft.ScriptedProvider([calling("broken", "tides"), "I could not look."])

    reply = await reply_to(await turn(provider, store, tools=TOOLS))

    assert reply.text == "I could not look."
    assert [m.content for m in provider.requests[1].steps[1:]] == [
        "error: the tool failed: ValueError: no moon",
        "error: there is no tool 'tides': did you mean 'tide'?",
    ]


async def test_the_rounds_of_a_turn_are_limited_and_the_model_is_told(store: weft.Store) -> None:
    provider = weft.ScriptedProvider([calling("tide"), calling("tide"), calling("tide", text="Hm.")])

    reply = await reply_to(await turn(provider, store, tools=TOOLS, settings=rounds(2)))

    assert (reply.text, reply.tool_calls) == ("Hm.", ())
    assert len(provider.requests) == 3
    assert "no more are allowed: answer now" in provider.requests[2].steps[-1].content
    assert [role for role, _ in await said(store)] == [
        "user", "assistant", "tool", "assistant", "tool", "user", "assistant",
    ]  # fmt: skip


async def test_a_limit_without_an_answer_says_so(store: weft.Store) -> None:
    provider = weft.ScriptedProvider([calling("tide"), calling("tide")])

    reply = await reply_to(await turn(provider, store, tools=TOOLS, settings=rounds(1)))

    assert reply.text == "[The limit of 1 rounds of tool calls was reached before there was an answer.]"


async def test_a_call_of_a_tool_that_runs_elsewhere_comes_back_to_the_caller(store: weft.Store) -> None:
    tools = weft.ToolRegistry([weft.ToolDefinition(name="beep")])
    asked = replace(calling("beep"), provider_data={"signature": "x"})

    reply = await reply_to(await turn(weft.ScriptedProvider([asked]), store, tools=tools))

    assert reply.tool_calls == asked.tool_calls
    [session] = await store.sessions.list()
    last = (await store.messages.all(session.id))[-1]
    assert (last.tool_calls, last.provider_data) == (asked.tool_calls, {"signature": "x"})


async def test_the_cost_of_all_requests_is_in_the_receipt(store: weft.Store) -> None:
    usage = weft.Usage(input_tokens=11, output_tokens=2, cached_tokens=5, written_tokens=3)
    info = weft.ModelInfo(id="small", provider="me")
    replies = [replace(calling("tide"), usage=usage, notes=("mended",)), weft.Reply(text="Six.", usage=usage)]
    given = await turn(weft.ScriptedProvider(replies, info=info), store, tools=TOOLS)

    reply = await reply_to(replace(given, provider_reason="it was asked for"))

    receipt = reply.receipt
    assert receipt is not None
    assert (receipt.provider, receipt.model, receipt.provider_reason) == ("me", "small", "it was asked for")
    assert receipt.usage == weft.Usage(input_tokens=22, output_tokens=4, cached_tokens=10, written_tokens=6)
    assert "mended" in receipt.warnings
    assert receipt.by_layer["steps"] > 0
    assert receipt.total_tokens == sum(item.tokens for item in receipt.items if item.kept) > 0


async def test_the_provider_is_shown_a_receipt_that_names_it_but_no_cost_yet(store: weft.Store) -> None:
    provider = weft.ScriptedProvider(["Hello."])

    await run(await turn(provider, store))

    [asked] = provider.requests
    assert asked.receipt is not None
    assert (asked.receipt.provider, asked.receipt.usage) == ("scripted", None)


async def test_an_error_of_the_provider_leaves_nothing_in_the_log(store: weft.Store) -> None:
    provider = weft.ScriptedProvider([weft.ProviderError("busy"), "Hello."])

    with pytest.raises(weft.ProviderError, match="busy"):
        await run(await turn(provider, store))
    assert await said(store) == []
    assert await store.turns.list_interrupted() == []

    await run(await turn(provider, store), "again")

    assert await said(store) == [("user", "again"), ("assistant", "Hello.")]


async def test_results_of_tools_are_remembered_when_the_provider_fails_afterwards(store: weft.Store) -> None:
    provider = weft.ScriptedProvider([calling("tide"), weft.ProviderError("busy")])

    with pytest.raises(weft.ProviderError, match="busy"):
        await run(await turn(provider, store, tools=TOOLS))

    assert await said(store) == [
        ("user", "hi"),
        ("assistant", ""),
        ("tool", "at six"),
        ("assistant", "[No answer: busy]"),
    ]


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


@pytest.mark.parametrize("then", [weft.ProviderError("it broke off"), None])
async def test_an_answer_that_breaks_off_is_an_error_and_leaves_nothing_in_the_log(
    store: weft.Store, then: weft.ProviderError | None
) -> None:
    with pytest.raises(weft.ProviderError, match="broke off"):
        await run(await turn(Stream(then), store))

    assert await said(store) == []


async def test_a_turn_that_is_closed_ends_the_stream_and_keeps_what_was_said(store: weft.Store) -> None:
    provider = Stream()
    events = run_turn(await turn(provider, store))
    assert isinstance(await anext(events), weft.TurnStarted)
    await anext(events)

    await events.aclose()

    assert provider.closed
    assert await said(store) == [("user", "hi"), ("assistant", f"Hel\n\n{CANCELLED}")]
    assert await store.turns.list_interrupted() == []


async def test_a_cancelled_task_ends_its_tools_and_keeps_what_was_done(store: weft.Store) -> None:
    started, ended = asyncio.Event(), asyncio.Event()

    async def wait_long() -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return ""

    tools = weft.ToolRegistry([wait_long])
    given = await turn(weft.ScriptedProvider([calling("wait_long")]), store, tools=tools)
    task = asyncio.create_task(run(given))
    await started.wait()

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert ended.is_set()
    assert await said(store) == [("user", "hi"), ("assistant", ""), ("assistant", CANCELLED)]
    [session] = await store.sessions.list()
    history = await store.messages.all(session.id)
    payload = weft.wire.to_wire("anthropic", weft.Context(history=tuple(history), current_message="go on"))
    assert weft.wire.violations("anthropic", payload) == []


async def test_results_from_before_a_turn_was_cancelled_are_remembered(store: weft.Store) -> None:
    seen = asyncio.Event()

    async def send() -> str:
        return "sent"

    async def wait_long() -> str:
        await asyncio.Event().wait()
        return ""

    async def listen(given: Turn) -> None:
        async for event in run_turn(given):
            if isinstance(event, weft.ToolFinished):
                seen.set()

    provider = weft.ScriptedProvider([calling("send", "wait_long")])
    given = await turn(provider, store, tools=weft.ToolRegistry([send, wait_long]))
    task = asyncio.create_task(listen(given))
    await seen.wait()

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert await said(store) == [
        ("user", "hi"),
        ("assistant", ""),
        ("tool", "sent"),
        ("assistant", CANCELLED),
    ]


@pytest.mark.parametrize(
    ("moment", "log"),
    [
        ("begin", [("user", "hi"), ("assistant", CANCELLED)]),
        ("step", [("user", "hi"), ("assistant", "Let me look."), ("assistant", CANCELLED)]),
        (
            "finish",
            [("user", "hi"), ("assistant", "Let me look."), ("tool", "at six"), ("assistant", "Six.")],
        ),
    ],
)
async def test_a_stop_while_something_is_written_ends_the_turn_in_one_way(
    store: weft.Store,
    monkeypatch: pytest.MonkeyPatch,
    sql: Callable[..., Any],
    moment: str,
    log: list[tuple[str, str]],
) -> None:
    provider = weft.ScriptedProvider([calling("tide", text="Let me look."), "Six."])
    given = await turn(provider, store, tools=TOOLS)
    write = getattr(store.turns, moment)

    async def stopped(*args: object, **more: object) -> object:
        result = await write(*args, **more)
        task.cancel()
        await asyncio.sleep(0)
        return result

    monkeypatch.setattr(store.turns, moment, stopped)
    task = asyncio.create_task(run(given))
    with pytest.raises(asyncio.CancelledError):
        await task

    assert await said(store) == log
    assert sql("select state from turns") == [("done" if moment == "finish" else "failed",)]


@pytest.mark.parametrize("message", ["", "  ", "\n"])
async def test_an_empty_message_reaches_no_provider_and_no_log(store: weft.Store, message: str) -> None:
    provider = weft.ScriptedProvider(["Hello."])

    with pytest.raises(weft.EmptyMessage):
        await run(await turn(provider, store), message)

    assert (provider.requests, await said(store)) == ([], [])


async def test_without_a_store_nothing_is_remembered(home: Path) -> None:
    given = Turn(
        request=HI, builder=weft.ContextBuilder(recipe="omega"), provider=weft.ScriptedProvider(["Hello."])
    )

    reply = await reply_to(given)

    assert (reply.text, reply.turn_id) == ("Hello.", "")
    assert os.listdir(home) == []


async def test_a_context_that_cannot_be_built_reaches_no_provider() -> None:
    provider = weft.ScriptedProvider(["Hello."])
    builder = weft.ContextBuilder(recipe="pattern").with_messages(
        [weft.Message(role="narrator", content="x")]
    )

    with pytest.raises(weft.ContextError):
        await run(Turn(request=HI, builder=builder, provider=provider))

    assert provider.requests == []


async def test_a_history_that_the_caller_holds_is_shown_but_not_written_to() -> None:
    history = [user("before")]
    provider = weft.ScriptedProvider(["Hello."])
    builder = weft.ContextBuilder(recipe="omega").with_messages(history)

    await run(Turn(request=HI, builder=builder, provider=provider))

    assert [m.content for m in provider.requests[0].history] == ["before"]
    assert history == [user("before")]
