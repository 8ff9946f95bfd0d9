"""What goes out: in the order of its place, again where that may help, and never lying about."""

import asyncio
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


async def put(app: weft.Assistant, *texts: str) -> None:
    for text in texts:
        message = Outbound(channel="telegram", conversation="7", text=text)
        await (await app.store.get()).mailbox.enqueue(message)


async def test_what_waits_behind_an_answer_that_fails_keeps_its_own_tries() -> None:
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


async def test_an_answer_that_a_channel_stumbles_over_is_not_left_lying(
    caplog: pytest.LogCaptureFixture,
) -> None:
    wire = Broken(KeyError("a bug"))
    async with gateway(Echo(), wire) as (made, app):
        await made.submit(said("hello"))
        await made.submit(said("again", 2))
        assert await wire.wait(1) == [("7", "echo again")]
        post: Any = (await app.store.get()).mailbox
        query = "select state from outbox order by created_at"
        states = await post._database.read(lambda db: [row[0] for row in db.execute(query)])

    assert states[0] == "failed"
    assert "an answer could not be delivered" in caplog.text


async def test_an_answer_whose_end_nobody_wrote_down_does_not_hold_up_the_next() -> None:
    wire = Wire()
    async with gateway(Echo(), wire) as (made, app):
        await put(app, "lost track of")
        await (await app.store.get()).mailbox.claim_due(9e9, ["telegram"])
        await put(app, "next")
        await made.look_again()

        assert await wire.wait(1) == [("7", "next")]
