"""What goes out: in the order of its place, again where that may help, and never lying about."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

import weft
from weft.gateway.deliveries import DOUBTFUL
from weft.types.envelope import Outbound
from wired import Echo, Wire, gateway, said


class Broken(Wire):
    """A channel that fails as it is told to, and notes what it was to send."""

    def __init__(self, *failures: Exception) -> None:
        super().__init__()
        self.failures, self.tried = list(failures), list[Outbound]()

    async def send(self, message: Outbound) -> None:
        self.tried.append(message)
        if self.failures:
            raise self.failures.pop(0)
        await super().send(message)


async def put(app: weft.Assistant, *texts: str, conversation: str = "7") -> None:
    for text in texts:
        message = Outbound(channel="telegram", conversation=conversation, text=text)
        await (await app.store.get()).mailbox.enqueue(message)


class Held(Wire):
    """A channel on which no answer to the person 7 arrives until `arrives` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.arrives, self.tried = asyncio.Event(), asyncio.Queue[str]()

    async def send(self, message: Outbound) -> None:
        self.tried.put_nowait(message.text)
        if message.conversation == "7":
            await self.arrives.wait()
        await super().send(message)


async def test_an_answer_waits_for_the_one_before_it_and_other_conversations_do_not() -> None:
    wire = Held()
    async with gateway(Echo(), wire) as (made, app), asyncio.timeout(30):
        await put(app, "first", "second")
        await made.look_again()
        assert await wire.tried.get() == "first"
        for text in ("other", "another"):  # the outbox is looked at again for each
            await put(app, text, conversation="8")
            await made.look_again()
            assert await wire.tried.get() == text
        wire.arrives.set()

        assert await wire.wait(4) == [("8", "other"), ("8", "another"), ("7", "first"), ("7", "second")]


async def test_each_try_waits_twice_as_long_as_the_one_before(sql: Callable[..., Any]) -> None:
    wire = Broken(*[weft.ChannelError("The line is down.", retry=1000)] * 3)
    waits = []
    async with gateway(Echo(), wire) as (made, app), asyncio.timeout(30):
        await put(app, "patience")
        for attempt in (1, 2, 3):
            before = time.time()
            while sql("select state, attempts from outbox") != [("pending", attempt)]:
                await made.look_again()
            [(at,)] = sql("select next_at from outbox")
            waits.append((at - time.time(), at - before))
            sql("update outbox set next_at = 0")

    for seconds, (least, most) in zip((1000, 2000, 4000), waits, strict=True):
        assert least <= seconds <= most


async def test_messages_behind_an_answer_that_fails_keep_their_own_tries() -> None:
    down = weft.ChannelError("The line is down.", retry=0.001)
    wire = Broken(*[down] * 6)
    async with gateway(Echo(), wire, attempts=3) as (made, app):
        await put(app, "first", "second")
        async with asyncio.timeout(30):
            while len(wire.tried) < 6:
                await made.look_again()

    assert [message.text for message in wire.tried] == ["first"] * 3 + ["second"] * 3


async def test_an_answer_of_which_parts_arrived_is_sent_with_the_number_of_them() -> None:
    wire = Broken(weft.ChannelError("The line is down.", retry=0.001, arrived=2))
    async with gateway(Echo(), wire) as (made, app):
        await put(app, "long")
        async with asyncio.timeout(30):
            while not wire.sent:
                await made.look_again()

    assert [message.arrived for message in wire.tried] == [0, 2]


async def test_an_answer_that_may_have_arrived_is_not_sent_again_but_told_of() -> None:
    wire = Broken(weft.ChannelError("Nobody knows.", doubtful=True))
    async with gateway(Echo(), wire) as (made, app):
        await put(app, "perhaps")
        await made.look_again()

        assert await wire.wait(1) == [("7", DOUBTFUL)]
    assert [message.text for message in wire.tried] == ["perhaps", DOUBTFUL]


async def test_an_answer_on_which_a_channel_has_a_bug_is_given_up_and_the_next_is_sent(
    caplog: pytest.LogCaptureFixture, sql: Callable[..., Any]
) -> None:
    wire = Broken(KeyError("a bug"))
    async with gateway(Echo(), wire) as (made, _):
        await made.submit(said("hello"))
        await made.submit(said("again", 2))
        assert await wire.wait(1) == [("7", "echo again")]

    assert sql("select state from outbox order by created_at") == [("failed",), ("sent",)]
    assert "an answer could not be delivered" in caplog.text


async def test_an_answer_whose_outcome_was_never_stored_does_not_hold_up_the_next() -> None:
    wire = Wire()
    async with gateway(Echo(), wire) as (made, app):
        mailbox, claimed = (await app.store.get()).mailbox, 0
        while not claimed:  # the sender may be quicker
            await put(app, "lost track of")
            claimed = len(await mailbox.claim_due(9e9, ["telegram"]))
        await put(app, "next")
        await made.look_again()

        async with asyncio.timeout(30), wire.came:
            await wire.came.wait_for(lambda: ("7", "next") in wire.sent)
