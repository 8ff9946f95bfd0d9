"""Attachments that were sent often enough: a new epoch leaves them out when that is cheaper."""

from dataclasses import replace

import pytest

import weft
from epoch_chaos import ME, Model, items_of, receipt_of, small, whole_text
from weft.context.diff import causes
from weft.tokens import count

TURNS, WINDOW = 50, 60_000
PRICED = replace(small(WINDOW), cache_seconds=3600, cache_read=0.1, cache_write=1.25)


async def talk(info: weft.ModelInfo, *, turns: int = TURNS, message: str = "Hello {}.") -> Model:
    """Talk while long facts change before every message, so that each has much attached to it."""
    model = Model(info=info)
    app = await weft.connect(provider=model)
    store = await app.store.get()
    for number in range(turns):
        for part in range(5):
            await store.facts.set(ME, f"diary {part}", f"day {number}: " + "calm sea, light wind. " * 8)
        await app.ask(message.format(number), session="chat")
        await app.folds.settle()
    await app.close()
    return model


def reasons_of(model: Model) -> list[str]:
    return [receipt_of(request).epoch_why.partition(":")[0] for request in model.requests]


def price_of(model: Model) -> float:
    """Price all requests: what the one before began with costs a tenth, and the rest is written."""
    price, before = 0.0, tuple[str, ...]()
    for request in model.requests:
        items = items_of("anthropic", request)
        same = next(
            (at for at, pair in enumerate(zip(items, before, strict=False)) if pair[0] != pair[1]), None
        )
        same = min(len(items), len(before)) if same is None else same
        price += 0.1 * sum(map(count, items[:same])) + 1.25 * sum(map(count, items[same:]))
        before = items
    return price


async def test_old_attachments_leave_when_that_is_cheaper_and_the_newest_state_stays() -> None:
    model = await talk(PRICED)

    reasons = reasons_of(model)
    assert reasons[0] == "start"
    assert 2 <= reasons.count("stale") <= TURNS // 10
    assert set(reasons) == {"start", "stale", ""}
    first = reasons.index("stale")
    before, after = model.requests[first - 1 : first + 1]
    assert f"day {first - 2}:" in whole_text(before)
    assert f"day {first - 2}:" not in whole_text(after)
    assert f"day {first}:" in whole_text(after)
    assert receipt_of(after).total_tokens < receipt_of(before).total_tokens / 2
    assert "tokens that went with earlier messages" in receipt_of(after).epoch_why
    [cause, *_] = causes(receipt_of(before), receipt_of(after))
    assert cause.kind == "old attachments"


async def test_the_whole_conversation_costs_less_than_if_everything_attached_stayed() -> None:
    refreshed, kept = await talk(PRICED), await talk(replace(PRICED, cache_read=1.0, cache_write=1.0))

    assert "stale" not in reasons_of(kept)
    assert price_of(refreshed) < 0.7 * price_of(kept)


@pytest.mark.parametrize("info", [small(WINDOW), replace(PRICED, cache_read=0.0)])
async def test_a_cache_without_a_price_and_one_that_is_read_for_free_are_never_left(
    info: weft.ModelInfo,
) -> None:
    assert set(reasons_of(await talk(info, turns=30))) == {"start", ""}


async def test_a_history_that_is_soon_folded_waits_for_its_fold() -> None:
    model = await talk(replace(PRICED, max_tokens=20_000), turns=40)

    reasons = reasons_of(model)
    assert "fold" in reasons or "full" in reasons
    assert "stale" not in reasons
