"""Who may come in."""

from collections.abc import AsyncIterator

import pytest

import weft
from weft.store.sqlite import auth
from weft.store.sqlite.backend import SqliteBackend
from weft.types.delivery import Paired


@pytest.fixture
async def store() -> AsyncIterator[SqliteBackend]:
    opened = SqliteBackend(":memory:")
    yield opened
    await opened.close()


async def test_a_code_works_once_and_a_newer_one_replaces_it(store: SqliteBackend) -> None:
    first = await store.auth.offer_pairing("telegram", "42")
    code = await store.auth.offer_pairing("telegram", "42")

    with pytest.raises(weft.StoreError, match="No one waits"):
        await store.auth.confirm_pairing(first)
    await store.auth.confirm_pairing(code)
    with pytest.raises(weft.StoreError, match="No one waits"):
        await store.auth.confirm_pairing(code)

    assert await store.auth.is_paired("telegram", "42") is True
    assert await store.auth.is_paired("web", "42") is False


async def test_an_old_code_lets_nobody_in(store: SqliteBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auth, "CODE_MINUTES", -1)
    code = await store.auth.offer_pairing("telegram", "42")

    with pytest.raises(weft.StoreError, match="15 minutes"):
        await store.auth.confirm_pairing(code)

    assert await store.auth.list_paired() == []


async def test_who_was_let_in_can_be_shut_out_again(store: SqliteBackend) -> None:
    await store.auth.confirm_pairing(await store.auth.offer_pairing("telegram", "42"))
    await store.auth.confirm_pairing(await store.auth.offer_pairing("telegram", "43"))

    assert await store.auth.unpair("telegram", "42") is True
    assert await store.auth.unpair("telegram", "42") is False
    assert await store.auth.list_paired() == [Paired(channel="telegram", sender="43")]


async def test_a_token_ends_with_its_name_or_with_the_next_one(store: SqliteBackend) -> None:
    old = await store.auth.create_token("phone")
    new = await store.auth.create_token("phone")

    assert await store.auth.find_token_name(old) is None
    assert await store.auth.find_token_name(new) == "phone"
    assert await store.auth.revoke_token("phone") is True
    assert await store.auth.find_token_name(new) is None
    assert await store.auth.revoke_token("phone") is False
