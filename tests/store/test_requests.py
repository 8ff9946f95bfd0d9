"""Requests in the store: how long they are kept, and that what builds on a deleted one stays whole."""

import time
from collections.abc import Callable
from typing import Any

import weft
from weft.types.sent import SentRequest, TurnRecord

from samples import user


async def _turn(store: weft.Store, session_id: str, *items: str) -> str:
    turn_id = await store.turns.begin(session_id, "Hi")
    record = TurnRecord(requests=(SentRequest(head="{}", items=items, digest="d"),))
    await store.turns.finish(turn_id, weft.Receipt(), user("Hi"), record=record)
    return turn_id


async def test_old_requests_are_deleted_and_those_that_build_on_them_stay_whole(
    store: weft.Store, sql: Callable[..., list[tuple[Any, ...]]]
) -> None:
    session = await store.sessions.find_or_create("app", "c", "owner")
    old = await _turn(store, session.id, '"a"', '"b"')
    new = await _turn(store, session.id, '"a"', '"b"', '"c"')
    other = await _turn(store, session.id, '"a"', '"b"', '"c"', '"d"')
    sql("update requests set at = 1000 where turn_id = ?", old)

    assert await store.turns.delete_requests(time.time() - 60) == 1

    assert await store.turns.requests(old) == []
    [stored] = await store.turns.requests(new)
    assert stored.request.items == ('"a"', '"b"', '"c"')
    [stored] = await store.turns.requests(other)
    assert stored.request.items == ('"a"', '"b"', '"c"', '"d"')
    assert await store.check() == []


async def test_what_no_request_refers_to_is_deleted_with_the_last_that_did(
    store: weft.Store, sql: Callable[..., list[tuple[Any, ...]]]
) -> None:
    session = await store.sessions.find_or_create("app", "c", "owner")
    await _turn(store, session.id, '"only here"')
    sql("update requests set at = 1000")

    await store.turns.delete_requests(time.time() - 60)

    assert sql("select count(*) from contents where text = '\"only here\"'") == [(0,)]
