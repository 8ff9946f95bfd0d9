"""Calls are run within rules and limits, and whatever happens becomes a result."""

import asyncio
from collections.abc import AsyncIterator, Iterable

import pytest

import weft
from weft.tools.registry import Offered
from weft.turn.act import Actor, ToolLimits


@pytest.fixture
async def store() -> AsyncIterator[weft.Store]:
    async with await weft.open(":memory:") as opened:
        yield opened


def call(name: str, n: int = 0, **arguments: object) -> weft.ToolCall:
    return weft.ToolCall(id=f"c{n}", name=name, arguments=arguments)


async def offered(*functions: object) -> Offered:
    return await weft.ToolRegistry(functions).offered("")  # type: ignore[arg-type]


async def acted(actor: Actor, *calls: weft.ToolCall) -> list[str]:
    events = [event async for event in actor.act(calls)]
    assert len(events) == 2 * len(calls)
    return [result.content for result in actor.results]


async def actor(*functions: object, rules: Iterable[weft.ToolRule] = (), **limits: float) -> Actor:
    return Actor(
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


async def test_a_result_without_text_says_so() -> None:
    async def quiet() -> str:
        return ""

    assert await acted(await actor(quiet), call("quiet")) == ["(no output)"]


async def test_a_long_result_is_cut_and_kept_whole(store: weft.Store) -> None:
    session = (await store.sessions.find_or_create("app", "c", "me")).id

    async def tell() -> str:
        return "abcdefghij"

    given = Actor(
        await offered(tell),
        limits=ToolLimits(max_chars=4),
        caller=weft.Caller(session_id=session),
        kept=store.turns,
    )
    [shown] = await acted(given, call("tell"))

    assert shown.startswith("abcd\n[Cut: 4 of 10 characters are shown; all of it is kept as ")
    result_id = shown.removesuffix(".]").rpartition(" ")[2]
    assert await store.turns.read_result(session, result_id, 0, 100) == ("abcdefghij", 10)


async def test_a_long_result_without_a_store_says_that_the_rest_is_gone() -> None:
    async def tell() -> str:
        return "abcdefghij"

    [shown] = await acted(await actor(tell, max_chars=4), call("tell"))

    assert shown == "abcd\n[Cut: 4 of 10 characters are shown; the rest was not kept.]"


async def test_the_end_of_a_turn_needs_a_call_that_succeeded() -> None:
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
