"""Ids sort in the order in which they are made, and rows become values by the types of their fields."""

import time
from dataclasses import replace
from datetime import UTC, datetime

import apsw
import pytest

from weft.store.sqlite.rows import fetch, new_id
from weft.types.envelope import Inbound
from weft.types.memory import BlockInfo, BlockType, Permission, Task


def test_ids_sort_in_the_order_in_which_they_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time()
    ids = [new_id() for _ in range(2000)]
    monkeypatch.setattr(time, "time", lambda: now)  # the clock goes back, and stands still
    ids += [new_id() for _ in range(2000)]

    assert ids == sorted(set(ids))
    assert {len(each) for each in ids} == {21}


def test_a_column_is_converted_to_the_type_of_the_field_that_it_is_named_after() -> None:
    query = """select 'b1' as id, 'iris' as agent_id, 'log' as block_type, 'Admin' as permission,
        'notes' as label, 1 as pinned, '{"kind": "text"}' as schema, 7 as version, ? as updated_at"""
    info = BlockInfo(
        id="b1",
        agent_id="iris",
        label="notes",
        block_type=BlockType.LOG,
        permission=Permission.ADMIN,
        pinned=True,
        schema={"kind": "text"},
        version=7,
        updated_at=datetime(2026, 11, 17, tzinfo=UTC),
    )
    db = apsw.Connection(":memory:")

    [at_a_time] = fetch(db, BlockInfo, query, datetime(2026, 11, 17, tzinfo=UTC).timestamp())
    [without] = fetch(db, BlockInfo, query, None)

    assert (at_a_time, without) == (info, replace(info, updated_at=None))
    assert [type(value) for value in (at_a_time.pinned, at_a_time.block_type)] == [bool, BlockType]
    assert fetch(db, BlockInfo, f"{query} where false", None) == []


def test_a_row_can_have_times_as_text_and_lists_and_take_its_parameters_by_name() -> None:
    db = apsw.Connection(":memory:")

    [task] = fetch(
        db, Task, "select 't1' as id, :text as text, '2026-11-17T09:00:00+01:00' as due", {"text": "tea"}
    )
    [message] = fetch(
        db,
        Inbound,
        "select 't' as channel, 'c' as conversation, 's' as sender, 'x' as text, "
        "json_array('b1', 'b2') as blocks",
    )

    assert (task.text, task.due) == ("tea", datetime.fromisoformat("2026-11-17T09:00:00+01:00"))
    assert message.blocks == ("b1", "b2")
