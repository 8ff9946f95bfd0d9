"""A turn is kept from its first moment, and ends exactly once, whatever happens to its process."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from math import inf
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import weft
from weft.store.process_id import is_running, this_process
from weft.store.sqlite import turns as turns_module
from weft.turn.journal import INTERRUPTED, settle_interrupted
from weft.types.envelope import Inbound
from weft.types.receipt import Expectation

from samples import assistant, user

RECEIPT = weft.Receipt(model="small", ratio=1.25)


async def session(store: weft.Store) -> str:
    return (await store.sessions.find_or_create("app", "c", "me")).id


async def said(store: weft.Store) -> list[str]:
    return [message.content for message in await store.messages.all(await session(store))]


async def test_a_turn_is_finished_once_and_only_once(store: weft.Store) -> None:
    turn = await store.turns.begin(await session(store), "hi")
    await store.turns.finish(turn, RECEIPT, user("hi"), assistant("Hello."))

    for again in (
        store.turns.finish(turn, RECEIPT, user("hi"), assistant("Twice.")),
        store.turns.fail(turn, "late", user("hi")),
    ):
        with pytest.raises(weft.StoreError, match="has ended already: nothing was written twice"):
            await again

    assert await store.turns.settle(turn, user("hi")) is False
    assert await said(store) == ["hi", "Hello."]


async def test_a_message_that_cannot_be_stored_leaves_the_turn_open(store: weft.Store) -> None:
    turn = await store.turns.begin(await session(store), "hi")
    odd = weft.Message(role="user", content="x", provider_data={"a": object()})

    with pytest.raises(TypeError):
        await store.turns.finish(turn, RECEIPT, user("hi"), odd)
    await store.turns.finish(turn, RECEIPT, user("hi"), assistant("Hello."))

    assert await said(store) == ["hi", "Hello."]


async def test_a_running_turn_of_a_living_process_is_not_interrupted(store: weft.Store) -> None:
    await store.turns.begin(await session(store), "hi")

    assert await store.turns.list_interrupted() == []


async def test_a_session_in_which_a_turn_runs_is_not_closed_as_idle(store: weft.Store) -> None:
    own = await session(store)
    turn = await store.turns.begin(own, "hi")

    assert await store.sessions.close_idle(own, inf) is False
    assert (await store.sessions.get(own)).closed_at is None
    await store.turns.finish(turn, RECEIPT, user("hi"), assistant("Hello."))
    assert await store.sessions.close_idle(own, inf) is True
    assert (await store.sessions.get(own)).closed_at is not None


async def test_the_message_of_a_failed_turn_stays_readable(
    store: weft.Store, sql: Callable[..., Any]
) -> None:
    turn = await store.turns.begin(await session(store), "hi")
    await store.turns.fail(turn, "no network")

    assert sql("select state, text, error from turns") == [("failed", "hi", "no network")]
    assert await said(store) == []


async def test_the_token_ratio_of_a_model_is_remembered(store: weft.Store) -> None:
    assert await store.turns.find_ratios("small", "exact") == {}

    turn = await store.turns.begin(await session(store), "hi")
    await store.turns.finish(turn, replace(RECEIPT, counter="exact"), user("hi"), assistant("Hello."))
    for script, ratio in (("cjk", 1.5), ("cjk", 1.6), ("", 9.0)):
        turn = await store.turns.begin(await session(store), "hi")
        expected = Expectation(ratio=1.0, script=script)
        await store.turns.finish(turn, replace(RECEIPT, counter="exact", ratio=ratio, expected=expected))

    assert await store.turns.find_ratios("small", "exact") == {"plain": 1.25, "cjk": 1.6}
    assert await store.turns.find_ratios("small", "chars/4") == {}


async def test_a_window_and_the_ratios_of_one_model_do_not_touch_each_other(store: weft.Store) -> None:
    turn = await store.turns.begin(await session(store), "hi")
    await store.turns.finish(turn, replace(RECEIPT, counter="exact"))

    await store.turns.save_window("small", 9000)

    assert await store.turns.find_window("small") == 9000
    assert await store.turns.find_ratios("small", "exact") == {"plain": 1.25}


async def test_a_long_result_is_read_in_parts_and_only_in_its_session(store: weft.Store) -> None:
    own = await session(store)
    kept = await store.turns.save_result(own, "search", "äbcdef")

    assert await store.turns.read_result(own, kept, 0, 2) == ("äb", 6, "")
    assert await store.turns.read_result(own, kept, 4, 10) == ("ef", 6, "")
    with pytest.raises(weft.StoreError, match="There is no result"):
        await store.turns.read_result("another", kept, 0, 2)


async def test_old_results_are_deleted_when_new_ones_are_stored(
    store: weft.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = await session(store)
    monkeypatch.setattr(turns_module, "time", SimpleNamespace(time=lambda: 0.0))
    old = [await store.turns.save_result(own, "search", "old") for _ in range(3)]
    monkeypatch.setattr(turns_module, "time", SimpleNamespace(time=lambda: 31 * 86_400.0))

    new = await store.turns.save_result(own, "search", "new")

    assert await store.turns.read_result(own, new, 0, 9) == ("new", 3, "")
    for result_id in old:
        with pytest.raises(weft.StoreError, match="results are kept for 30 days"):
            await store.turns.read_result(own, result_id, 0, 2)


async def test_only_the_newest_results_are_stored(store: weft.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns_module, "MOST_RESULTS", 3)
    own = await session(store)

    ids = [await store.turns.save_result(own, "search", f"result {n}") for n in range(5)]

    with pytest.raises(weft.StoreError, match="There is no result"):
        await store.turns.read_result(own, ids[1], 0, 9)
    assert [(await store.turns.read_result(own, id_, 7, 9))[0] for id_ in ids[2:]] == ["2", "3", "4"]


async def test_a_purge_reaches_turns_steps_and_results(store: weft.Store, tmp_path: Path) -> None:
    own = await session(store)
    await store.turns.fail(await store.turns.begin(own, "my pin is q4711z"), "pin q4711z is wrong")
    await store.turns.step(await store.turns.begin(own, "again q4711z"), assistant('"q4711z"'))
    await store.turns.save_result(own, "search", "q4711z found")

    assert await store.purge("q4711z") == 5

    await store.close()
    assert b"q4711z" not in (tmp_path / "weft.db").read_bytes()


PROGRAM = """
import asyncio, sys, weft

async def main(path):
    store = await weft.open(path)
    session = await store.sessions.find_or_create("app", "c", "me")
    turn = await store.turns.begin(session.id, "Where is the boat?")
    call = weft.ToolCall(id="1", name="look")
    await store.turns.step(turn, weft.Message(role="assistant", content="", tool_calls=(call,)))
    print("begun", flush=True)
    await asyncio.Event().wait()

asyncio.run(main(sys.argv[1]))
"""


def killed_in_the_middle(path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", PROGRAM, str(path)], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"begun\n"
        child.send_signal(signal.SIGKILL)


async def test_a_turn_whose_process_was_killed_is_reported_once_and_its_messages_are_in_the_log(
    tmp_path: Path,
) -> None:
    path = tmp_path / "weft.db"
    killed_in_the_middle(path)

    async with await weft.open(path) as one, await weft.open(path) as two:
        first, second = await asyncio.gather(settle_interrupted(one.turns), settle_interrupted(two.turns))

        assert [turn.text for turn in [*first, *second]] == ["Where is the boat?"]
        assert await said(one) == ["Where is the boat?", "", INTERRUPTED]
        assert await settle_interrupted(one.turns) == []
        history = tuple(await one.messages.all(await session(one)))
        payload = weft.wire.to_wire("openai", weft.Context(history=history, current_message="And now?"))
        assert weft.wire.violations("openai", payload) == []


async def test_the_app_reports_what_was_interrupted(tmp_path: Path) -> None:
    killed_in_the_middle(tmp_path / "weft.db")
    app = await weft.connect(provider=weft.ScriptedProvider())
    try:
        assert [turn.text for turn in await app.interrupted()] == ["Where is the boat?"]
        assert await app.interrupted() == []
    finally:
        await app.close()


def test_a_process_is_known_by_more_than_its_number() -> None:
    place, _, began = this_process().rpartition("/")

    assert is_running(this_process()) is True
    assert is_running(f"{place}/{int(began or 0) - 1}") is False
    assert is_running(this_process().replace(str(os.getpid()), "999999999")) is False
    assert is_running("elsewhere/pid:[1]/1/1") is None
    assert is_running("") is None


async def test_a_long_result_can_be_read_past_a_nul(store: weft.Store) -> None:
    place = await session(store)
    result = await store.turns.save_result(place, "dump", "abc\0def")

    assert await store.turns.read_result(place, result, 2, 10) == ("c\ufffddef", 7, "")


def test_a_forked_process_is_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    parent = this_process()

    monkeypatch.setattr(os, "getpid", lambda: 4_000_000)

    assert this_process() != parent
    assert is_running(this_process()) is False
    assert is_running(parent) is True


async def test_a_message_that_became_part_of_a_turn_needs_no_answer_of_its_own(store: weft.Store) -> None:
    inbox = [
        await store.mailbox.receive(
            Inbound(channel="telegram", conversation="7", sender="7", text=text, external_id=text)
        )
        for text in ("begin", "also this")
    ]
    first, second = (str(inbox_id) for inbox_id in inbox)
    turn = await store.turns.begin(await session(store), "begin", inbox_id=first)

    await store.turns.step(turn, user("also this"), inbox_ids=[second])

    assert await store.mailbox.list_waiting() == []
    await store.turns.finish(
        turn, RECEIPT, user("begin"), user("also this"), assistant("Both."), reply="Both."
    )
    [sent] = await store.mailbox.claim_due(9e9, ("telegram",))
    assert sent.message.text == "Both."


async def test_an_interrupted_turn_that_went_on_with_a_message_does_not_log_it_again(
    store: weft.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such a turn runs when a program brings the results of its own tools."""
    turn = await store.turns.begin(await session(store), "hi", is_known=True)
    await store.turns.step(turn, assistant("Let me see."))
    monkeypatch.setattr("weft.store.sqlite.turns.is_interrupted", lambda *_: True)

    await settle_interrupted(store.turns)

    assert await said(store) == ["Let me see.", INTERRUPTED]
