"""Tasks are told at their time, once, also when nobody was there at that time."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

import weft
from weft.store.rules import TaskLimits

LISBON = "Europe/Lisbon"
ALL = ("telegram",)
END = datetime(2040, 1, 1, tzinfo=UTC).timestamp()


def at(text: str, zone: str = LISBON) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone))


async def add(store: weft.Store, due: str, repeat: str = "once", text: str = "water the plants") -> str:
    wall = datetime.fromisoformat(due)
    return await store.tasks.add(
        "telegram:7", text, wall, repeat, zone=LISBON, channel="telegram", conversation="7"
    )


async def told(store: weft.Store, now: datetime) -> list[str]:
    await store.tasks.fire(now.timestamp())
    texts = []
    while due := await store.mailbox.claim_due(END, ALL):
        for delivery in due:
            await store.mailbox.mark_sent(delivery.id)
            texts.append(delivery.message.text)
    return texts


async def test_a_task_is_told_at_its_time_and_only_once(store: weft.Store) -> None:
    await add(store, "2026-11-17 09:00")

    assert await told(store, at("2026-11-17 08:59")) == []
    assert await told(store, at("2026-11-17 09:00")) == ["⏰ water the plants"]
    assert await told(store, at("2026-11-17 09:01")) == []
    assert await store.tasks.list("telegram:7") == []


async def test_a_task_that_was_missed_is_told_late_with_a_note(store: weft.Store, tmp_path: Path) -> None:
    await add(store, "2026-11-17 09:00")
    await store.close()

    async with await weft.open(tmp_path / "weft.db") as again:
        assert await told(again, at("2026-11-18 12:00")) == [
            "⏰ water the plants (due 2026-11-17 09:00, told late)"
        ]


async def test_a_repeating_task_is_told_each_time_and_missed_times_are_told_once(store: weft.Store) -> None:
    await add(store, "2026-03-27 09:00", "daily")

    assert len(await told(store, at("2026-03-27 09:00"))) == 1
    [task] = await store.tasks.list("telegram:7")
    assert task.due == at("2026-03-28 09:00")
    assert len(await told(store, at("2026-03-30 10:00"))) == 1, "three days were missed"
    [task] = await store.tasks.list("telegram:7")
    assert task.due == at("2026-03-31 09:00"), "by the wall, although the clock changed"


async def test_a_monthly_task_at_the_end_of_a_month_stays_at_the_end(store: weft.Store) -> None:
    await add(store, "2026-01-31 09:00", "monthly")

    for now, following in (
        ("2026-01-31 09:00", "2026-02-28 09:00"),
        ("2026-02-28 09:00", "2026-03-31 09:00"),
    ):
        await told(store, at(now))
        [task] = await store.tasks.list("telegram:7")
        assert task.due == at(following)


async def test_a_task_that_two_open_stores_fire_at_once_is_told_once(
    store: weft.Store, tmp_path: Path, sql: Callable[..., Any]
) -> None:
    await add(store, "2026-11-17 09:00")
    async with await weft.open(tmp_path / "weft.db") as other:
        now = at("2026-11-17 09:00").timestamp()
        fired = await asyncio.gather(store.tasks.fire(now), other.tasks.fire(now))

    assert sum(map(len, fired)) == 1
    assert sql("select text from outbox") == [("⏰ water the plants",)]


async def test_a_task_can_be_changed_by_its_own_person_only(store: weft.Store) -> None:
    task_id = await add(store, "2026-11-17 09:00")

    changed = await store.tasks.update(
        "telegram:7", task_id[:6], due=datetime(2026, 11, 18, 7), repeat="weekly"
    )

    assert (changed.text, changed.repeat, changed.due) == (
        "water the plants",
        "weekly",
        at("2026-11-18 07:00"),
    )
    assert await store.tasks.next_due() == at("2026-11-18 07:00").timestamp()
    with pytest.raises(weft.StoreError, match="No task of yours"):
        await store.tasks.update("telegram:8", task_id, text="mine now")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"repeat": "hourlyish"}, "Nothing repeats"),
        ({"repeat": "daily", "due": None}, "needs a time"),
        ({"zone": "Middle/Earth", "due": datetime(2026, 1, 1)}, "no time zone 'Middle/Earth'"),
    ],
)
async def test_a_task_that_makes_no_sense_is_refused(
    store: weft.Store, more: dict[str, object], words: str
) -> None:
    with pytest.raises(weft.WeftError, match=words):
        await store.tasks.add("a:b", "x", **more)  # type: ignore[arg-type]

    assert await store.tasks.list("a:b") == []


async def test_a_task_without_a_channel_stays_pending(store: weft.Store) -> None:
    await store.tasks.add("a:b", "x", datetime.now(UTC) - timedelta(hours=1))

    assert await told(store, datetime.now(UTC)) == []
    assert [task.text for task in await store.tasks.list("a:b")] == ["x"]


@pytest.mark.parametrize(
    ("due", "zone", "words"),
    [
        ("0001-01-01 00:00+14:00", "UTC", "Nothing can be due in the year 1"),
        ("2026-01-01 09:00+00:00", "Mars/Phobos", "There is no time zone 'Mars/Phobos'"),
    ],
)
async def test_a_time_that_makes_no_sense_is_refused(
    store: weft.Store, due: str, zone: str, words: str
) -> None:
    with pytest.raises(weft.StoreError, match=words):
        await store.tasks.add("telegram:7", "tea", datetime.fromisoformat(due), zone=zone)

    assert await store.tasks.list("telegram:7") == []


async def test_a_task_with_a_time_that_makes_no_sense_is_set_aside_and_the_others_are_told(
    store: weft.Store, caplog: pytest.LogCaptureFixture, sql: Callable[..., Any]
) -> None:
    await add(store, "2026-11-17 09:00", text="tea")
    await add(store, "2026-11-17 09:00", text="water the plants")
    sql("update tasks set zone = 'Mars/Phobos' where text = 'tea'")

    assert await told(store, at("2026-11-17 09:00")) == ["⏰ water the plants"]
    assert await told(store, at("2026-11-17 09:01")) == []
    assert "set aside" in caplog.text


async def test_a_person_has_at_most_so_many_pending_tasks_even_if_they_come_at_once(
    store: weft.Store,
) -> None:
    await store.people.link("http:ada", "ada")
    await store.people.link("telegram:7", "ada")
    limits = TaskLimits(max_pending=20)
    senders = ["http:ada", "telegram:7"] * 15

    outcomes = await asyncio.gather(
        *(store.tasks.add(sender, f"task {at}", limits=limits) for at, sender in enumerate(senders)),
        return_exceptions=True,
    )

    refused = [str(outcome) for outcome in outcomes if isinstance(outcome, weft.StoreError)]
    assert len(await store.tasks.list("http:ada")) == 20
    assert len(refused) == 10
    assert set(refused) == {
        "20 tasks are pending already, and 20 is the most: cancel some first, or raise `tasks.max_pending`."
    }
    assert await store.tasks.add("http:eve", "of somebody else", limits=limits)


@pytest.mark.parametrize(
    ("repeat", "seconds", "is_allowed"),
    [
        ("* * * * *", 60, True),
        ("* * * * *", 61, False),
        ("*/5 * * * *", 300, True),
        ("0,1 * * * *", 300, False),
        ("daily", 86_400, True),
        ("daily", 86_401, False),
        ("once", 86_401, True),
    ],
)
async def test_a_task_that_repeats_more_often_than_the_settings_allow_is_refused(
    store: weft.Store, repeat: str, seconds: float, is_allowed: bool
) -> None:
    due = datetime(2036, 1, 1, 10, tzinfo=UTC)
    limits = TaskLimits(min_repeat_seconds=seconds)
    task = await store.tasks.add("a:b", "dive", due)
    if is_allowed:
        await store.tasks.add("a:b", "swim", due, repeat, limits=limits)
        await store.tasks.update("a:b", task, repeat=repeat, limits=limits)
        return
    for work in (
        store.tasks.add("a:b", "swim", due, repeat, limits=limits),
        store.tasks.update("a:b", task, repeat=repeat, limits=limits),
    ):
        with pytest.raises(weft.StoreError, match="let it repeat less often, or lower"):
            await work
    assert [(one.text, one.repeat) for one in await store.tasks.list("a:b")] == [("dive", "once")]


async def test_a_task_that_fires_late_is_not_due_again_within_a_minute(store: weft.Store) -> None:
    due = datetime(2036, 1, 1, 10, tzinfo=UTC)
    await store.tasks.add("a:b", "dive", due, "* * * * *", channel="a", conversation="b")

    await store.tasks.fire(due.timestamp() + 0.2)
    [on_time] = await store.tasks.list("a:b")
    await store.tasks.fire(due.timestamp() + 110)
    [late] = await store.tasks.list("a:b")

    assert on_time.due == due + timedelta(minutes=1)
    assert late.due == due + timedelta(minutes=3)
