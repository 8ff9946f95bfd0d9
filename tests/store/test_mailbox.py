"""What came in and what must go out is safe before anybody is told."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import weft
from weft.types.envelope import Inbound, Outbound

LATER = time.time() + 10**6
ALL = ("telegram", "http", "t")


def inbound(text: str = "hi", external_id: str = "1", channel: str = "telegram") -> Inbound:
    return Inbound(channel=channel, conversation="c", sender="7", text=text, external_id=external_id)


async def out(store: weft.Store, now: float = LATER) -> list[str]:
    return [delivery.message.text for delivery in await store.mailbox.claim_due(now, ALL)]


async def test_a_message_that_comes_twice_is_stored_once(store: weft.Store) -> None:
    assert await store.mailbox.receive(inbound()) is not None
    assert await store.mailbox.receive(inbound()) is None
    assert await store.mailbox.receive(inbound(channel="http")) is not None
    assert await store.mailbox.receive(inbound(external_id="")) is not None
    assert await store.mailbox.receive(inbound(external_id="")) is not None, "without an id nothing is known"

    assert len(await store.mailbox.list_waiting()) == 4


async def test_messages_wait_in_the_order_in_which_they_came(store: weft.Store, tmp_path: Path) -> None:
    for n in range(5):
        await store.mailbox.receive(inbound(f"m{n}", str(n)))
    await store.close()

    async with await weft.open(tmp_path / "weft.db") as again:
        waiting = await again.mailbox.list_waiting()

    assert [one.message.text for one in waiting] == ["m0", "m1", "m2", "m3", "m4"]
    assert waiting[0].message == inbound("m0", "0")


async def test_an_answer_ends_the_message_and_goes_out_once(store: weft.Store) -> None:
    inbox_id = await store.mailbox.receive(inbound())
    assert inbox_id is not None

    await store.mailbox.answer(inbox_id, "Hello.")
    await store.mailbox.answer(inbox_id, "Hello again.")

    assert await store.mailbox.list_waiting() == []
    assert await out(store) == ["Hello."]
    assert await out(store) == [], "it is being sent"


async def test_no_text_is_left_of_a_message_that_was_answered_and_delivered(
    store: weft.Store, sql: Callable[..., Any]
) -> None:
    await store.mailbox.answer(await store.mailbox.receive(inbound()) or "", "Hello.")
    [delivery] = await store.mailbox.claim_due(LATER, ALL)

    await store.mailbox.mark_sent(delivery.id)

    assert sql("select state, text from inbox") == [("done", None)]
    assert sql("select state, text from outbox") == [("sent", None)]


async def test_of_the_answers_to_one_conversation_only_the_first_is_due_and_none_while_it_is_busy(
    store: weft.Store,
) -> None:
    for conversation, text in (("c", "one"), ("c", "two"), ("d", "three")):
        await store.mailbox.enqueue(Outbound(channel="t", conversation=conversation, text=text))

    assert [each.message.text for each in await store.mailbox.claim_due(LATER, ALL)] == ["one", "three"]
    assert await store.mailbox.claim_due(LATER, ALL, busy=[("t", "c")]) == []
    assert await out(store) == ["two"], "the conversation is free again"


async def test_an_empty_answer_sends_nothing(store: weft.Store) -> None:
    inbox_id = await store.mailbox.receive(inbound())
    assert inbox_id is not None

    await store.mailbox.answer(inbox_id, " ")

    assert (await store.mailbox.list_waiting(), await out(store)) == ([], [])


async def test_an_answer_that_did_not_arrive_is_tried_again_at_its_time(store: weft.Store) -> None:
    await store.mailbox.enqueue(Outbound(channel="t", conversation="c", text="Hello."))
    [delivery] = await store.mailbox.claim_due(LATER, ALL)

    await store.mailbox.reschedule(delivery.id, LATER + 60)

    assert await store.mailbox.claim_due(LATER, ALL) == []
    [second] = await store.mailbox.claim_due(LATER + 61, ALL)
    assert (second.id, second.attempts) == (delivery.id, 2)
    await store.mailbox.mark_sent(second.id)
    assert await store.mailbox.claim_due(LATER + 99, ALL) == await store.mailbox.fail_interrupted(ALL) == []


async def test_an_answer_that_was_being_sent_when_the_process_died_is_doubtful_once(
    store: weft.Store, tmp_path: Path
) -> None:
    await store.mailbox.enqueue(Outbound(channel="t", conversation="c", text="Hello."))
    await store.mailbox.claim_due(LATER, ALL)
    await store.close()

    async with await weft.open(tmp_path / "weft.db") as again:
        assert [one.message.text for one in await again.mailbox.fail_interrupted(ALL)] == ["Hello."]
        assert await again.mailbox.fail_interrupted(ALL) == await again.mailbox.claim_due(LATER, ALL) == []


async def test_the_text_of_a_refused_message_is_deleted_and_the_attempt_is_recorded(
    store: weft.Store, sql: Callable[..., Any]
) -> None:
    inbox_id = await store.mailbox.receive(inbound("let me in, it is Mallory"))
    assert inbox_id is not None

    await store.mailbox.refuse(inbox_id, "not paired")

    [denial] = await store.auth.list_denied()
    assert (denial.channel, denial.sender, denial.why, denial.count) == ("telegram", "7", "not paired", 1)
    assert await store.mailbox.list_waiting() == []
    assert sql("select text from inbox") == [(None,)]


async def test_an_undeliverable_answer_stays_readable(store: weft.Store, sql: Callable[..., Any]) -> None:
    await store.mailbox.enqueue(Outbound(channel="t", conversation="c", text="Hello."))
    [delivery] = await store.mailbox.claim_due(LATER, ALL)

    await store.mailbox.mark_failed(delivery.id)

    assert sql("select state, text from outbox") == [("failed", "Hello.")]
    assert await store.mailbox.claim_due(LATER, ALL) == []


async def test_only_answers_of_the_given_channels_are_due(store: weft.Store) -> None:
    await store.mailbox.enqueue(Outbound(channel="t", conversation="c", text="Hello."))

    assert await store.mailbox.claim_due(LATER, ("telegram",)) == []
    assert len(await store.mailbox.claim_due(LATER, ("t",))) == 1


async def test_old_mail_is_deleted_unless_it_waits_or_could_not_be_delivered(
    store: weft.Store, sql: Callable[..., Any]
) -> None:
    now = time.time()
    for number, text in enumerate(("told", "lost", "waits")):
        inbox_id = await store.mailbox.receive(inbound(text, str(number)))
        if text != "waits":
            await store.mailbox.answer(inbox_id or "", f"answer to {text}")
            [delivery] = await store.mailbox.claim_due(LATER, ALL)
            await (store.mailbox.mark_sent if text == "told" else store.mailbox.mark_failed)(delivery.id)
    refused = await store.mailbox.receive(inbound("let me in", "9"))
    await store.mailbox.refuse(refused or "", "not paired")

    counts = (
        "select (select count(*) from inbox), (select count(*) from outbox), (select count(*) from denials)"
    )

    await store.mailbox.delete_old(now + 29 * 86_400)
    assert sql(counts) == [(4, 2, 1)]
    await store.mailbox.delete_old(now + 31 * 86_400)
    assert sql(counts) == [(1, 1, 1)]
    assert [waiting.message.text for waiting in await store.mailbox.list_waiting()] == ["waits"]
    await store.mailbox.delete_old(now + 366 * 86_400)
    assert sql(counts) == [(1, 1, 0)]
