"""Order is a number that the database gives: a clock that goes back changes nothing."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

import weft
from weft.store.sqlite import mailbox, turns
from weft.store.sqlite.rows import _Ids
from weft.types.envelope import Inbound, Outbound

from samples import user

NOW = 1_800_000_000.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Return a function that sets the clock, and makes ids anew as a process that starts then does."""

    def set_clock(seconds: float) -> None:
        monkeypatch.setattr(time, "time", lambda: NOW + seconds)
        monkeypatch.setattr(mailbox, "new_id", _Ids())
        monkeypatch.setattr(turns, "new_id", _Ids())

    set_clock(0)
    return set_clock


async def test_messages_wait_in_the_order_in_which_they_came_although_the_clock_went_back(
    store: weft.Store, clock: Callable[[float], None]
) -> None:
    for number, seconds in enumerate((0, -3600, -7200, 60)):
        clock(seconds)
        await store.mailbox.receive(
            Inbound(channel="t", conversation="c", sender="7", text=f"m{number}", external_id=str(number))
        )

    waiting = await store.mailbox.list_waiting()

    assert [one.message.text for one in waiting] == ["m0", "m1", "m2", "m3"]


async def test_answers_go_out_in_the_order_in_which_they_were_made_although_the_clock_went_back(
    store: weft.Store, clock: Callable[[float], None]
) -> None:
    for number, seconds in enumerate((0, -3600, -7200)):
        clock(seconds)
        await store.mailbox.enqueue(Outbound(channel="t", conversation="c", text=f"m{number}"))
    await store.mailbox.enqueue(Outbound(channel="t", conversation="d", text="another place"))

    due = []
    while batch := await store.mailbox.claim_due(NOW + 10, ("t",)):
        due += [delivery.message.text for delivery in batch]
        for delivery in batch:
            await store.mailbox.mark_sent(delivery.id)

    assert due == ["m0", "another place", "m1", "m2"]


async def test_turns_are_listed_in_their_order_although_the_clock_went_back(
    store: weft.Store, clock: Callable[[float], None]
) -> None:
    session = (await store.sessions.find_or_create("a", "b", "c")).id
    ids = []
    for seconds in (0, -3600):
        clock(seconds)
        ids.append(await store.turns.begin(session, f"at {seconds}"))
        await store.turns.finish(ids[-1], weft.Receipt(), user("hi"))

    assert await store.turns.list(session) == ids[::-1], "newest first"


async def test_the_session_that_was_used_last_is_listed_first_although_the_clock_went_back(
    store: weft.Store, clock: Callable[[float], None]
) -> None:
    first = (await store.sessions.new("a", "1", "c")).id
    clock(-3600)
    second = (await store.sessions.new("a", "2", "c")).id
    before = [one.id for one in await store.sessions.list()]
    clock(-7200)
    await store.messages.append(first, user("hello again"))

    assert before == [second, first]
    assert [one.id for one in await store.sessions.list()] == [first, second]


async def test_the_newest_change_of_a_fact_is_undone_although_the_clock_went_back(
    store: weft.Store, clock: Callable[[float], None]
) -> None:
    for seconds, city in ((0, "Lisbon"), (-3600, "Porto"), (-7200, "Faro")):
        clock(seconds)
        await store.facts.set("a:c", "city", city)
    clock(-9000)
    await store.facts.delete("a:c", "city")

    assert [fact.value for fact in await store.facts.history("a:c", "city")] == ["Lisbon", "Porto", "Faro"]
    assert [await store.facts.undo("a:c", "city") for _ in range(3)] == ["Faro", "Porto", "Lisbon"]


async def test_the_newest_summary_comes_first_although_the_clock_went_back(
    store: weft.Store, clock: Callable[[float], None]
) -> None:
    for seconds in (0, -3600):
        clock(seconds)
        await store.summaries.add("a", "c", f"at {seconds}")

    assert [one.text for one in await store.summaries.recent("a", "c")] == ["at -3600", "at 0"]


async def test_the_order_survives_an_export_and_goes_on_after_it(
    tmp_path: Path, clock: Callable[[float], None]
) -> None:
    async with await weft.open(tmp_path / "one.db") as store:
        for seconds in (0, -3600):
            clock(seconds)
            await store.mailbox.enqueue(Outbound(channel="t", conversation="c", text=f"at {seconds}"))
        await store.export(tmp_path / "out")
    async with await weft.open(tmp_path / "two.db") as store:
        await store.restore_export(tmp_path / "out")
        clock(-7200)
        await store.mailbox.enqueue(Outbound(channel="t", conversation="c", text="at -7200"))

        texts = []
        while batch := await store.mailbox.claim_due(NOW + 10, ("t",)):
            texts += [delivery.message.text for delivery in batch]

    assert texts == ["at 0", "at -3600", "at -7200"]
