"""Ids sort in the order in which they are made: mail of one millisecond must keep its order."""

import time

import pytest

from weft.store.sqlite.rows import new_id


def test_ids_sort_in_the_order_in_which_they_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time()
    ids = [new_id() for _ in range(2000)]
    monkeypatch.setattr(time, "time", lambda: now)  # the clock goes back, and stands still
    ids += [new_id() for _ in range(2000)]

    assert ids == sorted(set(ids))
    assert {len(each) for each in ids} == {21}
