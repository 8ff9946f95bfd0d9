"""What lasts, in plain lists and dicts."""

import hypothesis.strategies as st
import pytest
from hypothesis import given

import weft
from weft.testing import (
    InMemoryBlocks,
    InMemoryFacts,
    InMemoryMessages,
    InMemoryRecall,
    InMemoryStore,
    InMemorySummaries,
    InMemoryTasks,
)
from weft.tokens import Counter, counter
from weft.types.session import Tail

from samples import user

CHARS = counter("chars/4")


def priced(*prices: int) -> list[weft.Message]:
    """Messages of so many tokens each."""
    return [user(str(at).ljust(4 * price, "x")[: 4 * price]) for at, price in enumerate(prices)]


async def tail(
    log: InMemoryMessages,
    session: str = "s",
    *,
    max_tokens: int | None = None,
    max_messages: int | None = None,
) -> Tail:
    return await log.tail(session, CHARS, max_tokens=max_tokens, max_messages=max_messages)


def contents(found: Tail) -> list[str]:
    return [entry.message.content for entry in found.entries]


# --- a log of its own


async def test_messages_are_stored_in_order_by_session() -> None:
    log = InMemoryMessages()

    await log.append("one", user("a"), user("b"))
    await log.append("two", user("x"))
    await log.append("one", user("c"))

    assert [m.content for m in await log.all("one")] == ["a", "b", "c"]
    assert [m.content for m in await log.all("two")] == ["x"]
    assert await log.all("three") == []


@pytest.mark.parametrize(("n", "expected"), [(2, ["b", "c"]), (9, ["a", "b", "c"]), (0, []), (-1, [])])
async def test_the_newest_messages_come_oldest_first(n: int, expected: list[str]) -> None:
    log = InMemoryMessages()
    await log.append("s", user("a"), user("b"), user("c"))

    assert [m.content for m in await log.newest("s", n)] == expected


async def test_changing_a_returned_list_does_not_change_the_log() -> None:
    log = InMemoryMessages()
    await log.append("s", user("a"))

    (await log.all("s")).clear()
    (await log.newest("s", 5)).clear()

    assert len(await log.all("s")) == 1


async def test_a_log_without_messages_has_an_empty_tail() -> None:
    assert await tail(InMemoryMessages()) == Tail(entries=[])


# --- a list that the caller holds


async def test_a_given_list_serves_every_session() -> None:
    log = InMemoryMessages([user("a")])

    assert contents(await tail(log, "one")) == contents(await tail(log, "two")) == ["a"]


async def test_a_list_that_grows_is_counted_only_where_it_is_new() -> None:
    messages = priced(1, 2)
    log = InMemoryMessages(messages)
    first = await tail(log)

    messages.extend(priced(3))
    second = await tail(log)

    assert [entry.tokens for entry in second.entries] == [1, 2, 3]
    assert second.entries[0] is first.entries[0]
    assert len(first.entries) == 2


async def test_a_list_that_was_shortened_is_counted_anew() -> None:
    messages = priced(1, 2, 3)
    log = InMemoryMessages(messages)
    await tail(log)

    del messages[1:]

    assert [entry.tokens for entry in (await tail(log, max_tokens=0)).entries] == [1]


async def test_a_list_that_was_replaced_by_another_of_the_same_length_is_counted_anew() -> None:
    messages = priced(1, 1)
    log = InMemoryMessages(messages)
    await tail(log)

    messages[:] = priced(5, 6)

    assert [entry.tokens for entry in (await tail(log)).entries] == [5, 6]


@pytest.mark.parametrize("at", [0, 1, 2])
async def test_a_message_that_was_changed_in_place_is_never_shown_as_it_was(at: int) -> None:
    messages = [user("a"), user("b"), user("c")]
    log = InMemoryMessages(messages)
    await tail(log)

    messages[at] = user("forgotten")

    assert contents(await tail(log)) == [message.content for message in messages]


async def test_a_list_changed_at_its_beginning_and_grown_at_its_end_is_counted_anew() -> None:
    messages = [user("a"), user("b")]
    log = InMemoryMessages(messages)
    await tail(log)

    del messages[0]
    messages += [user("c"), user("d")]

    assert contents(await tail(log)) == ["b", "c", "d"]


async def test_a_log_of_a_given_list_leaves_appending_to_its_owner() -> None:
    log = InMemoryMessages([user("a")])

    with pytest.raises(weft.StoreError, match="append to that list"):
        await log.append("s", user("b"))

    assert [m.content for m in await log.all("s")] == ["a"]


async def test_each_way_of_counting_has_its_own_prices() -> None:
    log = InMemoryMessages([user("x" * 20)])

    by_four = await tail(log)
    by_five = await log.tail("s", counter("chars/5"), max_tokens=None, max_messages=None)

    assert (by_four.entries[0].tokens, by_five.entries[0].tokens) == (5, 4)


# --- tails


@pytest.mark.parametrize(
    ("max_tokens", "max_messages", "shown"),
    [
        (None, None, 5),
        (None, 2, 3),
        (None, 9, 5),
        (None, 0, 1),
        (30, None, 4),
        (29, None, 3),
        (0, None, 1),
        (999, None, 5),
        (30, 1, 2),
        (0, 3, 1),
    ],
)
async def test_a_tail_goes_up_to_and_including_the_message_that_passes_a_limit(
    max_tokens: int | None, max_messages: int | None, shown: int
) -> None:
    log = InMemoryMessages(priced(10, 10, 10, 10, 10))

    found = await tail(log, max_tokens=max_tokens, max_messages=max_messages)

    assert len(found.entries) == shown
    assert (found.messages_before, found.tokens_before) == (5 - shown, 10 * (5 - shown))


@given(st.lists(st.integers(0, 20), max_size=12), st.integers(0, 120), st.integers(0, 14))
async def test_a_tail_holds_all_that_could_be_shown_and_accounts_for_the_rest(
    prices: list[int], max_tokens: int, max_messages: int
) -> None:
    found = await tail(InMemoryMessages(priced(*prices)), max_tokens=max_tokens, max_messages=max_messages)

    count = len(found.entries)
    assert count + found.messages_before == len(prices)
    assert sum(entry.tokens for entry in found.entries) + found.tokens_before == sum(prices)
    passes = sum(entry.tokens for entry in found.entries) > max_tokens or count > max_messages
    assert passes or found.messages_before == 0


async def test_a_message_is_counted_once_however_often_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counted: list[str] = []
    count = Counter.message

    def noted(self: Counter, message: weft.Message) -> int:
        counted.append(message.content)
        return count(self, message)

    monkeypatch.setattr(Counter, "message", noted)
    log = InMemoryMessages()
    await log.append("s", user("a"), user("b"))

    for _ in range(3):
        await tail(log)
    await log.append("s", user("c"))
    await tail(log)

    assert counted == ["a", "b", "c"]


# --- the rest of the store


async def test_facts_tasks_summaries_and_recall_belong_to_a_person() -> None:
    facts, tasks = [weft.Fact(key="city", value="Lisbon")], [weft.Task(id="1", text="Buy batteries")]
    summaries = [weft.Summary(text=str(n)) for n in range(5)]
    recalled = [weft.Recalled(text=str(n), speaker="User") for n in range(5)]
    store = InMemoryStore(
        memory=InMemoryBlocks(),
        facts=InMemoryFacts({"telegram:42": facts}),
        tasks=InMemoryTasks({"telegram:42": tasks}),
        summaries=InMemorySummaries({("telegram", "42"): summaries}),
        recall=InMemoryRecall({"telegram:42": recalled}),
    )

    assert await store.facts.list("telegram:42") == facts
    assert await store.tasks.list("telegram:42") == tasks
    assert await store.summaries.recent("telegram", "42") == summaries[:3]
    assert await store.summaries.recent("telegram", "42", 1) == summaries[:1]
    assert await store.recall.recall("q", sender="telegram:42", session_id="s", limit=2) == recalled[:2]


async def test_a_person_of_whom_nothing_is_known_has_nothing() -> None:
    store = InMemoryStore(memory=InMemoryBlocks())

    assert list(await store.facts.list("x")) == []
    assert list(await store.tasks.list("x")) == []
    assert list(await store.summaries.recent("x", "y")) == []
    assert list(await store.recall.recall("q", sender="x", session_id="s", limit=2)) == []


async def test_two_stores_share_nothing() -> None:
    one, two = InMemoryStore(memory=InMemoryBlocks()), InMemoryStore(memory=InMemoryBlocks())

    await one.messages.append("s", user("a"))

    assert await two.messages.all("s") == []
