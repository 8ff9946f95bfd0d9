"""Calls are run within rules and limits, and whatever happens becomes a result."""

import asyncio
import threading
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

import weft
from weft.tools.registry import Offered
from weft.turn import act
from weft.turn.act import ToolLimits, ToolRunner


def call(name: str, n: int = 0, **arguments: object) -> weft.ToolCall:
    return weft.ToolCall(id=f"c{n}", name=name, arguments=arguments)


async def offered(*functions: object) -> Offered:
    return await weft.ToolRegistry(functions).offered("")  # type: ignore[arg-type]


async def acted(actor: ToolRunner, *calls: weft.ToolCall) -> list[str]:
    events = [event async for event in actor.act(calls)]
    assert len(events) == 2 * len(calls)
    return [result.content for result in actor.results]


async def actor(*functions: object, rules: Iterable[weft.ToolRule] = (), **limits: float) -> ToolRunner:
    return ToolRunner(
        await offered(*functions),
        rules=rules,
        limits=ToolLimits(**limits),  # type: ignore[arg-type]
        caller=weft.Caller(),
    )


async def first() -> str:
    return "one"


async def second() -> str:
    return "two"


async def test_calls_of_one_reply_run_side_by_side_and_answer_in_their_order() -> None:
    both = asyncio.Barrier(2)

    async def meet(who: str) -> str:
        async with both:
            return who

    given = await actor(meet, seconds=30)

    assert await acted(given, call("meet", 0, who="a"), call("meet", 1, who="b")) == ["a", "b"]
    assert [result.tool_call_id for result in given.results] == ["c0", "c1"]
    assert {result.origin for result in given.results} == {"tool"}


async def test_a_call_that_needs_another_waits_for_it_within_one_reply() -> None:
    given = await actor(first, second, rules=[weft.ToolRule.requires_prior("second", "first")])

    assert await acted(given, call("first", 0), call("second", 1)) == ["one", "two"]


async def test_a_call_before_the_one_it_needs_is_refused_in_words() -> None:
    given = await actor(first, second, rules=[weft.ToolRule.requires_prior("second", "first")])

    assert await acted(given, call("second", 0), call("first", 1)) == [
        "error: refused by a rule: Call `second` only after calling `first`.",
        "one",
    ]


async def test_a_call_that_takes_too_long_is_ended() -> None:
    async def sleep() -> str:
        await asyncio.Event().wait()
        return ""

    given = await actor(sleep, seconds=0.01)

    assert await acted(given, call("sleep")) == ["error: it took longer than 0.01 seconds and was ended."]


async def test_a_tool_that_does_not_end_is_left_behind_with_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(act, "_GRACE_SECONDS", 0.01)
    enough = asyncio.Event()

    async def stubborn() -> str:
        while not enough.is_set():
            try:
                await enough.wait()
            except asyncio.CancelledError:
                continue
        return ""

    given = await actor(stubborn, seconds=0.01)

    assert await acted(given, call("stubborn")) == ["error: it took longer than 0.01 seconds and was ended."]
    assert "1 calls did not end when they were told to: they are left behind" in caplog.text
    enough.set()


async def test_a_timeout_within_a_tool_is_the_tools_own_error() -> None:
    async def ask() -> str:
        raise TimeoutError("the sea is silent")

    assert await acted(await actor(ask), call("ask")) == [
        "error: the tool failed: TimeoutError: the sea is silent"
    ]


@pytest.mark.parametrize("kind", [SystemExit, asyncio.CancelledError])
async def test_a_tool_cannot_end_the_program_or_the_turn(kind: type[BaseException]) -> None:
    async def leave() -> str:
        raise kind("bye")

    def leave_thread() -> str:
        raise kind("bye")

    told = await acted(await actor(leave, leave_thread), call("leave"), call("leave_thread", 1))

    assert [text.startswith("error: the tool failed: ") for text in told] == [True, True]


async def test_functions_that_hang_do_not_take_the_threads_of_the_store(store: weft.Store) -> None:
    released = threading.Event()

    def hang() -> str:
        released.wait(60)
        return ""

    given = await actor(hang, seconds=0.1)
    try:
        await acted(given, *(call("hang", n) for n in range(100)))
        assert await asyncio.wait_for(asyncio.to_thread(lambda: "free"), 30) == "free"
        async with asyncio.timeout(30):
            await store.facts.set("app:me", "city", "Lisbon")
            assert await store.facts.find("app:me", "city") == "Lisbon"
    finally:
        released.set()


async def test_a_call_by_the_name_on_the_wire_reaches_its_tool() -> None:
    tool = weft.Tool(definition=weft.ToolDefinition(name="notes.get"), run=_ran)
    given = ToolRunner(await weft.ToolRegistry([tool]).offered(""), limits=ToolLimits(), caller=weft.Caller())
    context = weft.Context(current_message="hi", tools=(tool.definition,))
    told = weft.wire.to_wire("openai", context)["tools"][0]["function"]["name"]
    assert told != "notes.get"

    reply = given.understood(weft.Reply(tool_calls=(call(told),)))

    assert await acted(given, *reply.tool_calls) == ["ran"]


async def _ran(arguments: Mapping[str, Any], caller: weft.Caller) -> str:
    return "ran"


async def test_the_result_of_the_call_that_ends_the_turn_is_its_ending() -> None:
    given = await actor(first, second, rules=[weft.ToolRule.exit_loop("first")])

    await acted(given, call("first", 0), call("second", 1))

    assert (given.ended, given.ending) == (True, "one")


async def test_a_result_without_text_says_so() -> None:
    async def quiet() -> str:
        return ""

    assert await acted(await actor(quiet), call("quiet")) == ["(no output)"]


async def test_a_long_result_is_cut_and_stored_whole(store: weft.Store) -> None:
    session = (await store.sessions.find_or_create("app", "c", "me")).id

    async def tell() -> str:
        return "abcdefghij"

    given = ToolRunner(
        await offered(tell),
        limits=ToolLimits(max_chars=4),
        caller=weft.Caller(session_id=session),
        turns=store.turns,
    )
    [shown] = await acted(given, call("tell"))

    assert shown.startswith("abcd\n[Cut: 4 of 10 characters are shown; all of it is stored as ")
    result_id = shown.removesuffix(".]").rpartition(" ")[2]
    assert await store.turns.read_result(session, result_id, 0, 100) == ("abcdefghij", 10, "")


async def test_a_result_is_stored_up_to_a_limit(store: weft.Store) -> None:
    session = (await store.sessions.find_or_create("app", "c", "me")).id

    async def tell() -> str:
        return "abcdefghij"

    runner = ToolRunner(
        await offered(tell),
        limits=ToolLimits(max_chars=4, max_stored_chars=6),
        caller=weft.Caller(session_id=session),
        turns=store.turns,
    )
    [shown] = await acted(runner, call("tell"))

    assert shown.startswith("abcd\n[Cut: 4 of 10 characters are shown; the first 6 are stored as ")
    result_id = shown.removesuffix(".]").rpartition(" ")[2]
    assert await store.turns.read_result(session, result_id, 0, 100) == ("abcdef", 6, "")


async def test_the_text_of_an_error_is_cut_and_not_stored() -> None:
    async def fail() -> str:
        raise ValueError("x" * 1_000_000)

    async def refuse() -> str:
        raise weft.ToolError("x" * 1_000_000)

    runner = await actor(fail, refuse)
    for text in await acted(runner, call("fail"), call("refuse", 1)):
        assert text.startswith("error: ")
        assert text.endswith("x [cut: 1000000 characters]")
        assert len(text) < 4_100


async def test_a_long_result_without_a_store_says_that_the_rest_is_gone() -> None:
    async def tell() -> str:
        return "abcdefghij"

    [shown] = await acted(await actor(tell, max_chars=4), call("tell"))

    assert shown == "abcd\n[Cut: 4 of 10 characters are shown; the rest was not stored.]"


async def test_only_a_call_that_succeeded_ends_a_turn() -> None:
    async def send(text: str) -> str:
        return f"sent {text}"

    given = await actor(send, rules=[weft.ToolRule.exit_loop("send")])

    await acted(given, call("send"))
    assert not given.ended, "it failed: a parameter was missing"

    await acted(given, call("send", 1, text="hi"))
    assert given.ended


async def test_rules_that_cannot_be_followed_are_warnings() -> None:
    given = await actor(first, rules=[weft.ToolRule.start_constraint("gone")])

    assert ["gone" in warning for warning in given.warnings] == [True]
