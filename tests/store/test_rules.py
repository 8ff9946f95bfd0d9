"""The rules that every database follows: when tasks fire, when a turn is interrupted, what is stored."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import weft
from weft.store.rules import (
    DueTask,
    check_fact,
    check_task,
    describe_changes,
    fire,
    in_zone,
    is_interrupted,
    ordered_task,
    retry_at,
)
from weft.types.envelope import Inbound, Outbound

DUE = datetime(2026, 11, 17, 9, 0, tzinfo=UTC)
NOW = DUE.timestamp()
TEA = weft.Task(id="t1", text="tea", due=DUE, channel="telegram", conversation="c7")


def due(**changes: Any) -> DueTask:
    task = replace(TEA, **changes)
    return DueTask(task=task, sender="telegram:7", due_at=NOW, first_due=DUE.isoformat(), attempts=0)


def test_a_reminder_is_sent_to_where_the_task_came_from_and_is_done_then() -> None:
    firing = fire(due(), NOW, ())

    assert firing.message == Outbound(channel="telegram", conversation="c7", text="⏰ tea")
    assert firing.next_due is None


def test_a_task_that_repeats_is_due_again_after_now_and_missed_times_count_once() -> None:
    assert fire(due(repeat="daily"), NOW, ()).next_due == DUE + timedelta(days=1)
    assert fire(due(repeat="daily"), NOW + 3.5 * 86_400, ()).next_due == DUE + timedelta(days=4)


def test_a_task_that_is_late_by_more_than_five_minutes_says_so() -> None:
    assert fire(due(), NOW + 300, ()).message.text == "⏰ tea"
    assert fire(due(), NOW + 301, ()).message.text == "⏰ tea (due 2026-11-17 09:00, told late)"


def test_an_action_becomes_a_message_for_the_assistant_only_where_it_acts() -> None:
    order = fire(due(action="action"), NOW, ["telegram"]).message
    elsewhere = fire(due(action="action"), NOW, ["http"]).message

    assert isinstance(order, Inbound)
    assert (order.sender, order.kind, order.origin) == ("7", "notice", "agent")
    assert order.text.endswith(" tea")
    assert ordered_task(order.external_id) == "t1"
    assert elsewhere == Outbound(channel="telegram", conversation="c7", text="⏰ tea")


def test_each_time_and_each_attempt_of_an_action_is_a_message_of_its_own() -> None:
    first = due(action="action")
    dues = [first, replace(first, attempts=1), replace(first, due_at=NOW + 1)]

    messages = [fire(each, NOW + 1, ["telegram"]).message for each in dues]

    assert len({message.external_id for message in messages if isinstance(message, Inbound)}) == 3


@pytest.mark.parametrize("changes", [{"zone": "Mars/Phobos"}, {"repeat": "daily", "zone": "../etc"}])
def test_a_task_whose_time_makes_no_sense_does_not_fire(changes: dict[str, str]) -> None:
    with pytest.raises(weft.StoreError, match="no time zone"):
        fire(due(**changes), NOW, ())


def test_only_messages_of_tasks_name_one() -> None:
    assert ordered_task("task:abc:1.0:0") == "abc"
    assert ordered_task("42") is None
    assert ordered_task("") is None


@pytest.mark.parametrize(
    ("status", "attempts", "due_at", "again"),
    [
        ("done", 0, NOW, NOW + 121),
        ("done", 2, NOW, NOW + 121),
        ("done", 3, NOW, None),
        ("cancelled", 0, NOW, None),
        ("pending", 0, NOW + 60, NOW + 60),
        ("pending", 0, NOW + 9999, NOW + 121),
    ],
)
def test_failed_work_is_tried_again_three_times_after_two_minutes(
    status: str, attempts: int, due_at: float, again: float | None
) -> None:
    assert retry_at(status, attempts, due_at, NOW + 0.5) == again


def test_a_task_needs_a_text_and_one_that_repeats_a_time() -> None:
    check_task("tea", None, "once")
    check_task("tea", DUE, "daily")
    with pytest.raises(weft.StoreError, match="empty"):
        check_task("", DUE, "once")
    with pytest.raises(weft.StoreError, match="needs a time"):
        check_task("tea", None, "daily")


def test_a_time_without_an_offset_is_on_the_wall_of_its_zone() -> None:
    wall = in_zone(datetime(2026, 7, 1, 9, 0), "Europe/Lisbon")

    assert wall is not None
    assert wall.astimezone(UTC) == datetime(2026, 7, 1, 8, 0, tzinfo=UTC)
    assert in_zone(DUE, "Europe/Lisbon") == DUE
    assert in_zone(None, "") is None
    with pytest.raises(weft.StoreError, match="year 1900"):
        in_zone(datetime(1900, 1, 1, tzinfo=UTC), "")


@pytest.mark.parametrize(
    ("is_running", "age_seconds", "expected"),
    [(True, 9e9, False), (False, 0, True), (None, 3600, False), (None, 3601, True)],
)
def test_a_turn_is_interrupted_if_its_process_is_gone_or_unseen_for_an_hour(
    is_running: bool | None, age_seconds: float, expected: bool
) -> None:
    assert is_interrupted(is_running, NOW - age_seconds, NOW) is expected


def test_a_fact_that_is_not_worth_storing_is_refused_with_the_reason() -> None:
    check_fact("city", "Lisbon", by_model=True)
    with pytest.raises(weft.StoreError, match="reserved"):
        check_fact("role", "admin", by_model=True)
    with pytest.raises(weft.StoreError, match="bare number"):
        check_fact("age", "42", by_model=False)


def test_the_same_change_several_times_in_a_row_is_one_entry() -> None:
    changes = [(DUE, "iris", "edit", "boat", "b1")] * 3
    changes += [(DUE, "system", "undo", "boat", "b1"), (DUE, "iris", "edit", "boat", "b1")]

    entries = describe_changes(changes)

    assert [(entry.agent, entry.text) for entry in entries] == [
        ("iris", "changed the block 'boat' 3 times"),
        ("", "took back a change of the block 'boat'"),
        ("iris", "changed the block 'boat'"),
    ]
