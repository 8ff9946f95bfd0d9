"""Folds that are opened again: a model that reads much more has the conversation word for word."""

import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import weft
from epoch_chaos import ME, Model, check_begins, check_receipt, receipt_of, small, whole_text

SMALL, MIDDLE, LARGE = 6_000, 14_500, 60_000
SUMMARY = "[Summary of messages"
LINE = "The sea was calm and the wind came from the north. "


async def talk(window: int, *texts: str, id_: str = "", answer: str = "Noted.") -> tuple[Model, weft.Reply]:
    """Say these texts in a process of their own, to a model with this window."""
    model = Model(lambda _: answer, info=small(window, id_ or f"model-{window}"))
    app = await weft.connect(provider=model)
    for text in texts:
        reply = await app.ask(text, session="chat")
        await app.folds.settle()
    await app.close()
    return model, reply


def long_texts(count: int, start: int = 0) -> list[str]:
    return [f"{number}: {LINE * 10}" for number in range(start, start + count)]


Log = list[tuple[str, str]]


async def log_of(session_id: str) -> Log:
    async with stored() as store:
        return [(one.role, one.content) for one in await store.messages.all(session_id)]


@asynccontextmanager
async def stored() -> AsyncIterator[weft.Store]:
    app = await weft.connect(provider=Model())
    yield await app.store.get()
    await app.close()


def history_of(context: weft.Context) -> Log:
    return [(message.role, message.content) for message in context.history]


def missing_in(context: weft.Context, count: int) -> list[int]:
    """Return the numbers of the texts that are not shown, and that no summary stands for either."""
    shown = {content.partition(":")[0] for role, content in history_of(context) if role == "user"}
    covered = max(
        map(int, re.findall(r"Summary of messages 1-(\d+) of this conv", whole_text(context))), default=0
    )
    return [number for number in range(count) if str(number) not in shown and 2 * number + 2 > covered]


async def test_a_larger_model_has_the_folded_conversation_verbatim_and_the_receipt_says_why() -> None:
    before, reply = await talk(SMALL, *long_texts(40))
    log = await log_of(reply.session_id)
    assert SUMMARY in whole_text(before.requests[-1])
    large, _ = await talk(LARGE, "What did I say first?", "And then?")
    first, second = large.requests

    assert history_of(first) == log
    assert SUMMARY not in whole_text(first)
    why = receipt_of(first).epoch_why
    assert why.startswith(f"model: model-{LARGE} in place of model-{SMALL}")
    assert "show messages 1-" in why
    assert "word for word again" in why
    check_receipt(first)
    check_begins(second, first)
    assert receipt_of(second).epoch_why == ""
    assert (await log_of(reply.session_id))[: len(log)] == log


async def test_back_at_the_small_model_it_is_folded_again_and_nothing_is_lost() -> None:
    _, reply = await talk(SMALL, *long_texts(40))
    await talk(LARGE, *long_texts(20, start=40))
    log = await log_of(reply.session_id)
    back, _ = await talk(SMALL, "Where were we?", "And before?")
    again, _ = await talk(LARGE, "All of it, please.")

    assert SUMMARY in whole_text(back.requests[0])
    for request in back.requests:
        check_receipt(request)
    assert missing_in(back.requests[-1], 60) == [], "a summary stands for what was said meanwhile"
    assert (await log_of(reply.session_id))[: len(log)] == log
    assert history_of(again.requests[0]) == (await log_of(reply.session_id))[:-2]
    assert SUMMARY not in whole_text(again.requests[0])


async def forget(store: weft.Store) -> None:
    await store.facts.set(ME, "city", "Porto")
    await store.facts.delete(ME, "city")


@pytest.mark.parametrize("end", ["forget", "cold", "soul"])
async def test_what_was_opened_stays_open_when_the_epoch_of_the_large_model_ends(
    end: str, home: Path, sql: Callable[..., list[tuple[Any, ...]]]
) -> None:
    (home / "workspace").mkdir()
    (home / "workspace" / "SOUL.md").write_text("You are Iris.", "utf-8")
    _, reply = await talk(SMALL, *long_texts(40))
    await talk(MIDDLE, "What did I say first?")
    if end == "soul":
        (home / "workspace" / "SOUL.md").write_text("You are Rose.", "utf-8")
    model = Model(
        info=weft.ModelInfo(id=f"model-{MIDDLE}", provider="scripted", max_tokens=MIDDLE, cache_seconds=300)
    )
    app = await weft.connect(provider=model)
    if end == "forget":
        await forget(await app.store.get())
    elif end == "cold":
        await app.store.get()
        sql("update epochs set asked_at = asked_at - 4000")
    await app.ask("And now?", session="chat")
    await app.close()

    assert receipt_of(model.requests[0]).epoch_why
    assert SUMMARY not in whole_text(model.requests[0])
    assert history_of(model.requests[0]) == (await log_of(reply.session_id))[:-2]


@pytest.mark.parametrize("large", [9_500, 13_000, 15_500])
async def test_what_does_not_fit_word_for_word_stays_a_summary_and_never_disappears(large: int) -> None:
    """With a window in between, each message is shown, or a summary stands for it."""
    await talk(SMALL, *long_texts(56))
    model, _ = await talk(large, "What did I say first?", "And then?")

    for request in model.requests:
        check_receipt(request)
        assert missing_in(request, 56) == []
    check_begins(model.requests[1], model.requests[0])


async def test_with_a_window_in_between_as_much_as_fits_is_shown_word_for_word() -> None:
    before, _ = await talk(SMALL, *long_texts(56))
    model, _ = await talk(12_000, "What did I say first?")

    newest, opened = before.requests[-1], model.requests[0]
    assert len(history_of(opened)) > 2 * len(history_of(newest))
    assert SUMMARY in whole_text(opened), "an older summary stands for the beginning"
    assert "word for word again" in receipt_of(opened).epoch_why


async def test_models_that_grow_in_small_steps_open_the_folds_too() -> None:
    _, reply = await talk(SMALL, *long_texts(40))
    limits = []
    for window in (10_000, 12_500, 16_000, 21_000):
        model, _ = await talk(window, f"Hello at {window}.")
        limits.append(receipt_of(model.requests[0]).limit)

    assert max(after / before for before, after in pairwise(limits)) < 1.5
    assert SUMMARY not in whole_text(model.requests[0])
    assert history_of(model.requests[0]) == (await log_of(reply.session_id))[:-2]


async def test_a_model_that_reads_a_little_more_goes_on_with_the_summary() -> None:
    await talk(SMALL, *long_texts(40))
    model, _ = await talk(SMALL + 1_000, "Hello.")

    assert SUMMARY in whole_text(model.requests[0])


async def test_a_large_model_whose_first_turn_fails_has_the_whole_conversation_in_the_next() -> None:
    _, reply = await talk(SMALL, *long_texts(40))
    model = Model(info=small(LARGE, "model-b"))
    script: list[Any] = [weft.ProviderError("The line is down."), "Here again."]
    model.answer = lambda _: script.pop(0)
    app = await weft.connect(provider=model)
    with pytest.raises(weft.ProviderError):
        await app.ask("Hello?", session="chat")
    await app.ask("Hello!", session="chat")
    await app.close()

    assert SUMMARY not in whole_text(model.requests[-1])
    assert history_of(model.requests[-1]) == (await log_of(reply.session_id))[:-2]


async def test_looking_with_a_larger_model_shows_everything_and_changes_nothing() -> None:
    _, reply = await talk(SMALL, *long_texts(40))
    log = await log_of(reply.session_id)
    app = await weft.connect(provider=Model(info=small(LARGE, "model-b")))
    look = await app.context("What did I say first?", session="chat")
    await app.close()
    small_again, _ = await talk(SMALL, "Hello.")

    assert history_of(look) == log
    assert receipt_of(small_again.requests[0]).epoch_why == ""
    assert SUMMARY in whole_text(small_again.requests[0])


async def test_a_conversation_that_fills_the_large_model_too_is_folded_there_and_stays_so() -> None:
    _, reply = await talk(SMALL, *long_texts(40))
    model, _ = await talk(14_000, *long_texts(60, start=40))
    cut = [
        request for request in model.requests if receipt_of(request).epoch_why.startswith(("fold", "full"))
    ]

    assert SUMMARY not in whole_text(model.requests[0])
    assert cut
    assert SUMMARY in whole_text(cut[-1])
    assert len([one for one in model.requests if receipt_of(one).epoch_why]) < 12, "no flapping"
    assert len(await log_of(reply.session_id)) == 200
