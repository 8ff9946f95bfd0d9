"""Tasks that the assistant does itself: at their time, once, and again if they failed."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import weft
from weft.gateway.background import take_reminders
from wired import Wire, calling, gateway, said

TEXT = "look up the tide"
SEARCH = calling("archival_search", query="sea")
ACTING = ("telegram",)
DUE = datetime(2036, 11, 17, 9, tzinfo=UTC)
LONG_AGO = datetime(2016, 11, 17, 9, tzinfo=UTC)


async def order(app: weft.Assistant, due: datetime = DUE, *, repeat: str = "once") -> weft.Store:
    store = await app.store.get()
    await store.tasks.add(
        "telegram:7", TEXT, due, repeat, action="action", channel="telegram", conversation="7"
    )
    return store


async def test_a_task_is_done_at_its_time_and_its_outcome_is_told_once() -> None:
    wire, model = Wire(), weft.ScriptedProvider(["High water is at noon."])
    async with gateway(model, wire) as (made, app):
        store = await order(app)
        for _ in range(2):
            await store.tasks.fire(DUE.timestamp(), acting=ACTING)
            await made.look_again()
        told = await wire.wait(1)
        [session] = await store.sessions.list()
        [asked, _] = await store.messages.all(session.id)
        pending = await store.tasks.list("telegram:7")

    assert told == [("7", "High water is at noon.")]
    assert asked.content.endswith("look up the tide")
    assert asked.origin == "agent", "nobody said it now: nothing is learned from it"
    assert pending == []
    assert len(model.requests) == 1


async def test_on_a_channel_without_actions_the_person_is_reminded() -> None:
    wire = Wire()
    async with gateway(weft.ScriptedProvider([]), wire) as (made, app):
        store = await order(app)
        await store.tasks.fire(DUE.timestamp())
        await made.look_again()

        assert await wire.wait(1) == [("7", "⏰ look up the tide")]


async def test_a_task_that_failed_is_tried_again_after_two_minutes_three_times_and_then_told() -> None:
    wire = Wire()
    down = [weft.ProviderError("the network is down.")] * 4
    async with gateway(weft.ScriptedProvider(down), wire) as (made, app):
        store = await order(app, LONG_AGO)
        now = LONG_AGO.timestamp()
        for attempt in range(4):
            before = datetime.now(UTC)
            assert len(await store.tasks.fire(now, acting=ACTING)) == 1
            await made.look_again()
            if attempt < 3:
                await _until_pending(store)
                [task] = await store.tasks.list("telegram:7")
                assert task.due is not None
                assert timedelta(minutes=2) <= task.due - before < timedelta(minutes=3)
                assert wire.sent == []
                assert await store.tasks.fire(task.due.timestamp() - 1, acting=ACTING) == []
                now = task.due.timestamp()
        [(_, told)] = await wire.wait(1)

        assert "the network is down." in told
        assert "look up the tide" in told
        assert await store.tasks.list("telegram:7") == []


async def test_a_repeating_task_that_fails_goes_on_at_its_next_time() -> None:
    wire = Wire()
    model = weft.ScriptedProvider([weft.ProviderError("the network is down."), "Done at last."])
    async with gateway(model, wire) as (made, app):
        store = await order(app, repeat="daily")
        await store.tasks.fire(DUE.timestamp(), acting=ACTING)
        await made.look_again()
        task = await _until_changed(store, DUE + timedelta(days=1))
        assert task.due is not None
        await store.tasks.fire(task.due.timestamp(), acting=ACTING)
        await made.look_again()

        assert await wire.wait(1) == [("7", "Done at last.")]
        [task] = await store.tasks.list("telegram:7")
        assert task.due is not None
        assert (task.due.hour, task.due.minute) == (9, 0)


async def _until_pending(store: weft.Store) -> None:
    async with asyncio.timeout(30):
        while not await store.tasks.list("telegram:7"):
            pass


async def _until_changed(store: weft.Store, due: datetime) -> weft.Task:
    async with asyncio.timeout(30):
        while True:
            [task] = await store.tasks.list("telegram:7")
            if task.due != due:
                return task


async def test_a_message_during_a_task_gets_an_answer_of_its_own() -> None:
    """A task that fails is tried again without a word: who steered it would not hear anything."""
    wire, model = Wire(), weft.ScriptedProvider([SEARCH, weft.ProviderError("it is down."), "Lisbon."])
    async with gateway(model, wire, while_running="steer") as (made, app):
        store = await order(app)
        await store.tasks.fire(DUE.timestamp(), acting=ACTING)
        await made.look_again()
        await made.submit(said("what is the capital of Portugal?"))

        assert await wire.wait(1) == [("7", "Lisbon.")]


async def test_a_chat_at_the_terminal_leaves_the_tasks_of_other_channels_alone() -> None:
    wire, model = Wire(), weft.ScriptedProvider(["High water is at noon."])
    async with gateway(model, wire) as (made, app):
        store = await order(app, datetime.now(UTC) - timedelta(seconds=1))
        assert await take_reminders(store, "terminal") == []
        await store.tasks.fire(datetime.now(UTC).timestamp(), acting=ACTING)
        await made.look_again()

        assert await wire.wait(1) == [("7", "High water is at noon.")]


async def test_a_task_that_the_assistant_does_creates_no_task_that_it_does() -> None:
    wire = Wire()
    breed = weft.ToolCall(
        id="c1",
        name="create_task",
        arguments={"text": "do it again", "due": "2036-11-17 09:01", "repeat": "* * * * *", "do": True},
    )
    remind = weft.ToolCall(
        id="c2", name="create_task", arguments={"text": "tell Ada", "due": "2036-11-17 10:00"}
    )
    model = weft.ScriptedProvider(
        [weft.Reply(text="", tool_calls=(breed, remind), stop_reason="tools"), "Done."]
    )
    async with gateway(model, wire) as (made, app):
        store = await order(app)
        await store.tasks.fire(DUE.timestamp(), acting=ACTING)
        await made.look_again()
        await wire.wait(1)
        pending = await store.tasks.list("telegram:7")

    [refused, created] = [m.content for m in model.requests[1].to_messages() if m.role == "tool"]
    assert refused.startswith("error: nobody asked for this now, so you cannot give yourself something to do")
    assert created.startswith("kept: ")
    assert [task.text for task in pending] == ["tell Ada"]


async def test_tasks_do_not_breed_however_often_they_fire(home: Path) -> None:
    """Three new tasks in every turn were 3, 9, 27, 81 after four minutes."""
    wire = Wire()
    breed = [
        weft.ToolCall(
            id=f"c{number}",
            name="create_task",
            arguments={"text": f"again {number} {{n}}", "due": "2036-11-17 09:00", "do": True},
        )
        for number in range(3)
    ]
    reply = weft.Reply(text="", tool_calls=tuple(breed), stop_reason="tools")
    async with gateway(weft.ScriptedProvider([reply, "ok"] * 20), wire) as (made, app):
        store = await order(app, repeat="* * * * *")
        for minute in range(4):
            await store.tasks.fire((DUE + timedelta(minutes=minute)).timestamp(), acting=ACTING)
            await made.look_again()
            await wire.wait(minute + 1)

        assert [task.text for task in await store.tasks.list("telegram:7")] == [TEXT]


async def test_by_a_setting_a_task_may_create_tasks(home: Path) -> None:
    (home / "config.toml").write_text("[tasks]\nfrom_tasks = true\n")
    wire = Wire()
    breed = weft.ToolCall(
        id="c1",
        name="create_task",
        arguments={"text": "again", "due": "2036-11-17 09:30", "do": True},
    )
    model = weft.ScriptedProvider([weft.Reply(text="", tool_calls=(breed,), stop_reason="tools"), "ok"])
    async with gateway(model, wire) as (made, app):
        store = await order(app)
        await store.tasks.fire(DUE.timestamp(), acting=ACTING)
        await made.look_again()
        await wire.wait(1)

        assert [task.text for task in await store.tasks.list("telegram:7")] == ["again"]
