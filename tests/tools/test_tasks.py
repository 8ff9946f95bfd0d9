"""Tools for tasks act for the caller, in the caller's place and zone."""

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

import weft
from weft.tools.tasks import task_tools

ADA = weft.Caller(channel="telegram", sender_id="7", conversation="9")
EVE = weft.Caller(channel="telegram", sender_id="8", conversation="8")


async def zone_of(sender: str) -> str:
    return "Europe/Lisbon" if sender == "telegram:7" else "UTC"


async def run(store: weft.Store, name: str, caller: weft.Caller = ADA, **arguments: Any) -> str:
    tool = next(tool for tool in task_tools(store.tasks, zone_of) if tool.name == name)
    return await tool.run(arguments, caller)


async def test_a_reminder_is_kept_with_its_time_zone_and_place(store: weft.Store) -> None:
    told = await run(store, "create_task", text="call Clara", due="2027-07-01 09:00", repeat="weekly")

    [task] = await store.tasks.list("telegram:7")
    assert told == f"kept: [{task.id[:8]}] call Clara (Thu 2027-07-01 09:00, weekly)"
    assert task.due == datetime(2027, 7, 1, 9, tzinfo=ZoneInfo("Europe/Lisbon"))
    assert (task.channel, task.conversation, task.zone) == ("telegram", "9", "Europe/Lisbon")


async def test_a_task_can_be_one_that_the_assistant_does_itself(store: weft.Store) -> None:
    told = await run(store, "create_task", text="look up the tide", due="2027-07-01 09:00", do=True)

    [task] = await store.tasks.list("telegram:7")
    assert task.action == "action"
    assert told == f"kept: [{task.id[:8]}] look up the tide [action] (Thu 2027-07-01 09:00, once)"


@pytest.mark.parametrize(
    ("caller", "due"), [(ADA, ""), (weft.Caller(channel="http", sender_id="owner"), "2027-07-01 09:00")]
)
async def test_what_is_to_be_done_needs_a_time_and_a_place(
    store: weft.Store, caller: weft.Caller, due: str
) -> None:
    with pytest.raises(weft.ToolError, match="needs a time, and a place"):
        await run(store, "create_task", caller, text="look up the tide", due=due, do=True)


async def test_where_nobody_can_be_told_a_task_stays_pending_and_the_model_knows(store: weft.Store) -> None:
    app = weft.Caller(channel="http", sender_id="owner")

    told = await run(store, "create_task", app, text="call Clara", due="2026-07-01 09:00")

    assert told.endswith("it stays in their list of pending tasks until it is cancelled.")
    assert await store.tasks.fire(datetime(2027, 1, 1).timestamp()) == []
    assert [task.text for task in await store.tasks.list("http:owner")] == ["call Clara"]


async def test_tasks_are_listed_changed_and_cancelled_by_the_start_of_their_id(store: weft.Store) -> None:
    await run(store, "create_task", text="pack")
    [task] = await store.tasks.list("telegram:7")

    assert await run(store, "list_tasks") == f"[{task.id[:8]}] pack (any time, once)"
    assert "2027-01-02 08:00" in await run(store, "update_task", id=task.id[:8], due="2027-01-02 08:00")
    assert await run(store, "cancel_task", id=task.id[:8]) == f"cancelled {task.id[:8]}"
    assert await run(store, "list_tasks") == "(no tasks)"


async def test_nobody_reaches_the_tasks_of_another(store: weft.Store) -> None:
    await run(store, "create_task", text="secret")
    [task] = await store.tasks.list("telegram:7")

    assert await run(store, "list_tasks", EVE) == "(no tasks)"
    for name in ("update_task", "cancel_task"):
        with pytest.raises(weft.StoreError, match="No task of yours"):
            await run(store, name, EVE, id=task.id)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"text": "x", "due": "tomorrow"}, "write it as YYYY-MM-DD HH:MM"),
        ({"text": " "}, "The task is empty"),
        ({"text": "x", "repeat": "sometimes"}, "Nothing repeats"),
        ({"text": "x", "repeat": "daily"}, "needs a time"),
    ],
)
async def test_what_makes_no_sense_is_told_to_the_model(
    store: weft.Store, arguments: dict[str, Any], words: str
) -> None:
    with pytest.raises(weft.WeftError, match=words):
        await run(store, "create_task", **arguments)
