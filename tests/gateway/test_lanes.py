"""Lanes: who runs, who waits, who is refused, and what happens to those who wait."""

import asyncio
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

import weft
from weft.config import load_config
from weft.gateway.lanes import ALL_BUSY, LANE_BUSY, LANE_FULL, STOPPED, STOPPING, Admission, Lanes
from weft.gateway.settings import GatewaySettings
from weft.providers.base import collected
from wired import Gated


def lanes(**settings: Any) -> Lanes:
    return Lanes(GatewaySettings(**settings))


def message(text: str, sender: str = "7", *, session: str | None = None, **more: Any) -> weft.TurnRequest:
    caller = weft.Caller(agent_id="weft", channel="telegram", sender_id=sender)
    return weft.TurnRequest(text=text, caller=caller, session="chat" if session is None else session, **more)


async def settled() -> None:
    """Let every task run until it waits for something."""
    for _ in range(20):
        await asyncio.sleep(0)


class Visit:
    """A task that is `inside` once its context was entered, and stays there until `leave` is set."""

    def __init__(self, context: AbstractAsyncContextManager[Admission | None]) -> None:
        self.leave, self.is_inside = asyncio.Event(), False
        self.place: Admission | None = None
        self.task = asyncio.create_task(self._run(context))

    async def _run(self, context: AbstractAsyncContextManager[Admission | None]) -> weft.Reply | None:
        async with context as self.place:
            self.is_inside = True
            if self.place is not None and self.place.reply is not None:
                return self.place.reply
            await self.leave.wait()
        return None

    async def end(self) -> weft.Reply | None:
        self.leave.set()
        async with asyncio.timeout(30):
            return await self.task


async def visits(desk: Lanes, *requests: weft.TurnRequest) -> list[Visit]:
    """Let requests come one after the other."""
    all_of_them = []
    for request in requests:
        all_of_them.append(Visit(desk.admit(request)))
        await settled()
    return all_of_them


async def refusal(desk: Lanes, request: weft.TurnRequest) -> str:
    """Return the sentence with which a request is refused at once."""
    [visit] = await visits(desk, request)
    assert visit.task.done(), "the request was let in, or waits"
    error = visit.task.exception()
    assert isinstance(error, weft.ChannelError)
    assert error.retry, "the sender may try again"
    return str(error)


async def test_the_requests_of_one_conversation_enter_one_at_a_time_in_the_order_they_came() -> None:
    everyone = await visits(lanes(), *(message(f"m{n}") for n in range(4)))

    for n, visit in enumerate(everyone):
        assert [each.is_inside for each in everyone] == [k <= n for k in range(4)]
        await visit.end()
        await settled()


async def test_other_conversations_and_requests_without_a_session_do_not_wait() -> None:
    others = (message("b", sender="8"), message("c", session="boat"), message("d", session=""))
    everyone = await visits(lanes(), message("a"), *others, message("e", session=""))

    assert all(visit.is_inside for visit in everyone)
    for visit in everyone:
        await visit.end()


async def test_a_lane_takes_so_many_waiting_requests_and_no_more() -> None:
    desk = lanes(max_waiting=2)
    everyone = await visits(desk, *(message(f"m{n}") for n in range(3)))

    assert await refusal(desk, message("m3")) == LANE_FULL.format(count=2)
    await everyone[0].end()
    await settled()
    everyone += await visits(desk, message("m4"))

    assert [visit.is_inside for visit in everyone] == [True, True, False, False]
    for visit in everyone:
        await visit.end()


async def test_the_bound_of_all_lanes_refuses_no_durable_message_and_no_notice() -> None:
    desk = lanes(at_once=1, max_waiting=1)
    everyone = await visits(desk, message("a", sender="1"), message("b", sender="2"))

    assert await refusal(desk, message("c", sender="3")) == ALL_BUSY
    durable = message("d", sender="4", inbox_id="i1")
    notice = message("e", sender="5", origin="import")
    everyone += await visits(desk, durable, notice)

    assert all(visit.is_inside for visit in everyone)
    for visit in everyone:
        await visit.end()


async def test_refuse_lets_no_message_of_a_person_wait_but_a_notice_may() -> None:
    desk = lanes(while_running="refuse")
    everyone = await visits(desk, message("a"))

    assert await refusal(desk, message("b")) == LANE_BUSY
    everyone += await visits(desk, message("a file is new", origin="import"))
    assert [visit.is_inside for visit in everyone] == [True, False]
    await everyone[0].end()
    await settled()
    assert everyone[1].is_inside
    await everyone[1].end()

    [again] = await visits(desk, message("b"))
    assert again.is_inside
    await again.end()


async def test_a_running_turn_absorbs_what_waits_up_to_the_first_it_does_not_accept() -> None:
    running, *waiting = await visits(lanes(), *(message(text) for text in ("a", "b", "c", "/new", "d")))
    assert running.place is not None
    lane = running.place.lane

    absorbed = lane.absorb(lambda request: not request.text.startswith("/"))
    assert [request.text for request in absorbed] == ["b", "c"]
    assert lane.absorb(lambda request: not request.text.startswith("/")) == []
    reply = weft.Reply(text="one answer for three")
    lane.settle(reply)
    await settled()

    assert [visit.task.done() for visit in waiting] == [True, True, False, False]
    assert [visit.task.result() for visit in waiting[:2]] == [reply, reply]
    assert [visit.is_inside for visit in waiting[2:]] == [False, False]
    await running.end()
    await settled()
    assert [visit.is_inside for visit in waiting[2:]] == [True, False], "nobody lost their place"
    for visit in waiting[2:]:
        await visit.end()


async def test_a_message_that_steered_a_turn_that_was_stopped_must_be_sent_again() -> None:
    running, steering = await visits(lanes(), message("a"), message("b"))
    assert running.place is not None
    running.place.lane.absorb(lambda _: True)

    running.place.lane.settle(None)
    await settled()

    assert steering.task.done()
    with pytest.raises(weft.ChannelError, match=STOPPED):
        await steering.task
    await running.end()


async def test_a_client_that_steered_and_went_away_does_not_disturb_the_turn() -> None:
    running, gone, steering = await visits(lanes(), message("a"), message("b"), message("c"))
    assert running.place is not None
    running.place.lane.absorb(lambda _: True)
    gone.task.cancel()
    await settled()

    reply = weft.Reply(text="done")
    running.place.lane.settle(reply)

    assert await asyncio.wait_for(steering.task, 30) is reply
    await running.end()


@pytest.mark.parametrize("cancelled", [0, 1])
async def test_a_request_that_is_cancelled_leaves_its_place_and_the_next_one_runs(cancelled: int) -> None:
    desk = lanes()
    everyone = await visits(desk, *(message(f"m{n}") for n in range(3)))

    everyone[cancelled].task.cancel()
    await settled()
    await everyone[1 - cancelled].end()
    await settled()

    assert everyone[2].is_inside
    await everyone[2].end()
    assert desk._lanes == {}, "an empty lane is forgotten"


async def test_a_waiting_request_that_is_cancelled_in_the_moment_it_is_woken_wakes_the_next() -> None:
    desk = lanes()
    async with desk.admit(message("m0")):
        second, third = await visits(desk, message("m1"), message("m2"))
    second.task.cancel()  # it has been woken, and did not run yet
    assert not second.is_inside
    await settled()

    assert second.task.cancelled()
    assert third.is_inside
    await third.end()


async def test_so_many_turns_run_at_once_and_the_next_begins_when_one_ends() -> None:
    desk = lanes(at_once=2)
    everyone = [Visit(desk.turn(session)) for session in ("s1", "s2", "s3", "")]
    await settled()
    assert [visit.is_inside for visit in everyone] == [True, True, False, False]

    await everyone[0].end()
    await settled()

    assert [visit.is_inside for visit in everyone] == [True, True, True, False]
    for visit in everyone[1:]:
        await visit.end()


async def test_a_session_has_one_turn_at_a_time_and_turns_without_one_share_nothing() -> None:
    desk = lanes()
    everyone = [Visit(desk.turn(session)) for session in ("s1", "s1", "s2", "", "")]
    await settled()
    assert [visit.is_inside for visit in everyone] == [True, False, True, True, True]

    await everyone[0].end()
    await settled()

    assert everyone[1].is_inside
    for visit in everyone[1:]:
        await visit.end()


async def test_a_person_who_is_asked_holds_no_slot_and_the_turn_takes_one_again_afterwards() -> None:
    desk = lanes(at_once=1)
    answered = asyncio.Event()

    async def ask(question: str) -> bool:
        await answered.wait()
        return question == "May I?"

    asking = Visit(desk.turn("s1"))
    await settled()
    consent = asyncio.ensure_future(desk.without_slot(ask)("May I?"))
    other = Visit(desk.turn("s2"))
    await settled()
    assert other.is_inside, "the slot was free while the person thought"

    answered.set()
    await settled()
    assert not consent.done(), "the turn goes on once it has a slot again"
    await other.end()
    assert await asyncio.wait_for(consent, 30)
    third = Visit(desk.turn("s3"))
    await settled()
    assert not third.is_inside
    await asking.end()
    await third.end()


async def test_stop_refuses_waiting_and_new_requests_and_lets_running_ones_end() -> None:
    desk = lanes(at_once=1)
    running, waiting = await visits(desk, message("a"), message("b"))
    turn, for_a_slot = Visit(desk.turn("s1")), Visit(desk.turn("s2"))
    await settled()

    desk.stop()
    await settled()

    assert not running.task.done()
    assert not turn.task.done()
    assert waiting.task.done(), "it does not wait for the one before it"
    with pytest.raises(weft.ChannelError, match=STOPPING):
        await waiting.task
    assert await refusal(desk, message("c", sender="8")) == STOPPING
    await turn.end()
    await settled()
    assert for_a_slot.task.done(), "it gets no slot any more"
    with pytest.raises(weft.ChannelError, match=STOPPING):
        await for_a_slot.task
    await running.end()


async def test_two_addresses_that_lead_to_one_session_have_one_turn_at_a_time(
    home: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "config.toml").write_text('recipe = "chai"\n', "utf-8")  # one session for all in a conversation
    model = Gated(["first", "second"])
    model.gate.clear()
    app = await weft.connect(load_config(), provider=model)
    store, turn, at_the_lock = await app.store.get(), app.lanes.turn, asyncio.Event()
    ada = asyncio.create_task(collected(app.handle(message("I am Ada", "42", session="boat"))))
    await asyncio.wait_for(model.asked.wait(), 30)
    model.asked.clear()

    def watched(session_id: str) -> AbstractAsyncContextManager[None]:
        at_the_lock.set()
        return turn(session_id)

    monkeypatch.setattr(app.lanes, "turn", watched)
    ben = asyncio.create_task(collected(app.handle(message("I am Ben", "7", session="boat"))))
    await asyncio.wait_for(at_the_lock.wait(), 30)
    for _ in range(20):  # a turn that did not wait would have read the store by now
        await store.sessions.list()
    assert not model.asked.is_set(), "Ben's turn waits for Ada's"
    model.gate.set()
    replies = await asyncio.gather(ada, ben)

    assert replies[0].session_id == replies[1].session_id
    assert [m.content for m in model.requests[1].history] == ["I am Ada", "first"]
    await app.close()
