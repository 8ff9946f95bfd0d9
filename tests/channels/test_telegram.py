"""Telegram, against a Bot API on loopback."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

import weft
from fake_telegram import TOKEN, FakeTelegram, error, message
from weft.channels.telegram import Telegram
from weft.channels.telegram_settings import TelegramSettings
from weft.types.envelope import Inbound, Outbound


def bot(fake: FakeTelegram, token: str = TOKEN) -> Telegram:
    return Telegram(token, TelegramSettings(api_url=fake.url, poll_seconds=5))


@asynccontextmanager
async def running(fake: FakeTelegram) -> AsyncIterator[tuple[Telegram, asyncio.Queue[Inbound]]]:
    """A bot that takes messages over into a queue."""
    channel, taken = bot(fake), asyncio.Queue[Inbound]()

    async def submit(inbound: Inbound) -> bool:
        taken.put_nowait(inbound)
        return True

    task = asyncio.create_task(channel.run(submit))
    try:
        yield channel, taken
    finally:
        await channel.stop()
        await asyncio.wait_for(task, 30)
        await channel.close()


async def sent(fake: FakeTelegram, text: str) -> list[str]:
    channel = bot(fake)
    try:
        await channel.send(Outbound(channel="telegram", conversation="7", text=text))
    finally:
        await channel.close()
    return [one["text"] for one in fake.sent]


async def test_a_message_of_a_person_comes_in_with_its_sender_and_chat(fake: FakeTelegram) -> None:
    fake.write("Where is the boat?", sender=7, chat=9)
    async with running(fake) as (_, taken):
        inbound = await asyncio.wait_for(taken.get(), 30)

    assert (inbound.channel, inbound.conversation, inbound.sender) == ("telegram", "9", "7")
    assert (inbound.text, inbound.external_id, inbound.kind) == ("Where is the boat?", "1", "text")
    assert inbound.name == "Ada No 7"


async def test_edits_and_pictures_are_told_apart_and_posts_of_a_channel_are_passed_over(
    fake: FakeTelegram,
) -> None:
    fake.update(edited_message=message("better", 7, 7))
    fake.update(message=message("", 7, 7, photo=[], caption="look"))
    fake.update(channel_post=message("news", 7, 7))
    fake.write("end")
    async with running(fake) as (_, taken):
        found = [await asyncio.wait_for(taken.get(), 30) for _ in range(3)]

    assert [(one.kind, one.text) for one in found] == [
        ("edit", "better"),
        ("unsupported", "look"),
        ("text", "end"),
    ]


async def test_an_update_is_confirmed_only_after_it_was_stored(fake: FakeTelegram) -> None:
    fake.write("one")
    channel, reached, safe = bot(fake), asyncio.Event(), asyncio.Event()
    calls: list[str] = []
    fake.trouble = lambda method, _: calls.append(method)

    async def submit(inbound: Inbound) -> bool:
        reached.set()
        await safe.wait()
        return True

    task = asyncio.create_task(channel.run(submit))
    await asyncio.wait_for(reached.wait(), 30)
    for _ in range(3):  # a poll that confirmed it would come before these
        await channel.typing("7")
    assert (fake.confirmed, calls.count("getUpdates")) == (0, 1)

    safe.set()
    await asyncio.to_thread(fake.wait_confirmed, 1)
    await channel.close()
    await asyncio.wait_for(task, 30)


async def test_an_update_that_was_not_confirmed_comes_again(fake: FakeTelegram) -> None:
    fake.write("one")

    async def die(inbound: Inbound) -> bool:
        raise RuntimeError("killed")

    channel = bot(fake)
    with pytest.raises(RuntimeError):
        await asyncio.wait_for(channel.run(die), 30)
    await channel.close()

    async with running(fake) as (_, taken):
        assert (await asyncio.wait_for(taken.get(), 30)).text == "one"


async def test_polling_goes_on_after_errors_of_telegram(fake: FakeTelegram) -> None:
    troubles = iter([(502, error(502, "Bad Gateway")), (429, error(429, "Too Many Requests", retry_after=1))])
    fake.trouble = lambda method, _: next(troubles, None) if method == "getUpdates" else None
    fake.write("after all")

    async with running(fake) as (_, taken):
        assert (await asyncio.wait_for(taken.get(), 60)).text == "after all"
    assert next(troubles, None) is None, "both troubles came first"


async def test_a_wrong_token_is_an_error_and_is_in_no_message_and_no_log(
    fake: FakeTelegram, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    channel = bot(fake, "42:wrong-token")

    with pytest.raises(weft.ChannelError, match="does not accept the token") as caught:
        await channel.run(lambda _: asyncio.sleep(0, True))
    await channel.close()

    assert "wrong-token" not in str(caught.value) + caplog.text
    assert "wrong-token" not in repr(TelegramSettings(token="wrong-token"))  # noqa: S106


async def test_an_answer_goes_out_with_its_formatting(fake: FakeTelegram) -> None:
    assert await sent(fake, "**At sea**, of course.") == ["<b>At sea</b>, of course."]
    assert (fake.sent[0]["chat_id"], fake.sent[0]["parse_mode"]) == ("7", "HTML")


async def test_a_long_answer_goes_out_in_parts(fake: FakeTelegram) -> None:
    texts = await sent(fake, "word " * 2000)

    assert len(texts) == 3
    assert " ".join(texts).split() == ["word"] * 2000


async def test_formatting_that_is_not_taken_goes_out_as_plain_text(fake: FakeTelegram) -> None:
    assert await sent(fake, "**unparsable** thing") == ["**unparsable** thing"]
    assert "parse_mode" not in fake.sent[0]


async def test_a_limit_in_the_middle_is_waited_for_and_nothing_is_sent_twice(fake: FakeTelegram) -> None:
    calls = iter(range(99))
    limit = (429, error(429, "Too Many Requests", retry_after=1))
    fake.trouble = lambda method, _: limit if method == "sendMessage" and next(calls) == 1 else None

    texts = await sent(fake, "word " * 2000)

    assert len(texts) == 3
    assert " ".join(texts).split() == ["word"] * 2000


@pytest.mark.parametrize(
    ("status", "words", "again"),
    [(403, "refuses to deliver this: Forbidden: bot was blocked", False), (500, "is sent later", True)],
)
async def test_a_failed_delivery_says_whether_to_try_again(
    fake: FakeTelegram, status: int, words: str, again: bool
) -> None:
    told = error(status, "Forbidden: bot was blocked by the user" if status == 403 else "Internal")
    fake.trouble = lambda method, _: (status, told) if method == "sendMessage" else None

    with pytest.raises(weft.ChannelError, match=words) as caught:
        await sent(fake, "Hello.")

    assert (caught.value.retry is not None) is again


async def test_typing_is_shown_in_the_chat(fake: FakeTelegram) -> None:
    channel = bot(fake)
    await channel.typing("7")
    await channel.close()

    assert fake.actions == [{"chat_id": "7", "action": "typing"}]


async def test_a_question_has_two_buttons_and_pressing_one_sends_its_text(fake: FakeTelegram) -> None:
    async with running(fake) as (channel, taken):
        await channel.ask("9", "May I?", yes="/yes 1a", no="/no 1a")
        fake.press("/yes 1a", sender=7, chat=9)
        inbound = await asyncio.wait_for(taken.get(), 30)
        await asyncio.to_thread(fake.wait_confirmed, 1)

    (question,) = fake.sent
    ((yes, no),) = json.loads(question["reply_markup"])["inline_keyboard"]
    assert (question["chat_id"], question["text"]) == ("9", "May I?")
    assert [(key["text"], key["callback_data"]) for key in (yes, no)] == [
        ("Yes", "/yes 1a"),
        ("No", "/no 1a"),
    ]
    assert (inbound.conversation, inbound.sender, inbound.text) == ("9", "7", "/yes 1a")
    assert inbound.kind == "text"
    assert fake.rested == ["q/yes 1a"]


async def test_a_question_that_is_too_long_for_a_message_comes_as_a_file_with_all_of_it(
    fake: FakeTelegram,
) -> None:
    question = "May I write this?\n\n" + "line ü\n" * 3000 + "the last word"
    channel = bot(fake)

    await channel.ask("9", question, yes="/yes 1a", no="/no 1a")
    await channel.close()

    assert fake.files == [{"chat_id": "9", "document": question}]
    [asked] = fake.sent
    assert asked["text"] == (
        "May I write this?\n\nThe file above has all of it, 21,032 characters: read it first."
    )
    assert "reply_markup" in asked


async def test_a_question_that_telegram_refuses_is_an_error(fake: FakeTelegram) -> None:
    fake.trouble = lambda method, _: (403, error(403, "Forbidden: bot was blocked by the user"))
    channel = bot(fake)

    with pytest.raises(weft.ChannelError, match="refuses to deliver"):
        await channel.ask("9", "May I?", yes="/yes", no="/no")
    await channel.close()


async def test_parts_that_arrived_are_not_sent_again(fake: FakeTelegram) -> None:
    calls: list[str] = []

    def trouble(method: str, fields: dict[str, str]) -> tuple[int, dict[str, object]] | None:
        calls.append(method)
        return (502, error(502, "Bad Gateway")) if calls.count("sendMessage") == 2 else None

    fake.trouble = trouble
    channel = bot(fake)
    long = Outbound(channel="telegram", conversation="7", text="\n\n".join(("a" * 3000, "b" * 3000)))

    with pytest.raises(weft.ChannelError) as failed:
        await channel.send(long)
    await channel.send(replace(long, arrived=failed.value.arrived))
    await channel.close()

    assert failed.value.retry is not None
    assert [one["text"][0] for one in fake.sent] == ["a", "b"]


async def test_parts_that_arrived_are_counted_when_the_plain_text_fails_too(fake: FakeTelegram) -> None:
    """The second part is refused as HTML, and then Telegram is down."""

    def trouble(method: str, fields: dict[str, str]) -> tuple[int, dict[str, object]] | None:
        is_second = method == "sendMessage" and "b" in fields["text"]
        return (502, error(502, "Bad Gateway")) if is_second and "parse_mode" not in fields else None

    fake.trouble = trouble
    with pytest.raises(weft.ChannelError) as failed:
        await sent(fake, "\n\n".join(("a" * 3000, "unparsable " + "b" * 3000)))

    assert (failed.value.arrived, len(fake.sent)) == (1, 1)


async def test_a_message_whose_answer_breaks_off_is_doubtful_and_not_sent_again() -> None:
    tries: list[bytes] = []

    async def break_off(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tries.append(await reader.readuntil(b"hello"))
        writer.close()

    async with await asyncio.start_server(break_off, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
        channel = Telegram(TOKEN, TelegramSettings(api_url=f"http://{host}:{port}"))
        with pytest.raises(weft.ChannelError) as failed:
            await channel.send(Outbound(channel="telegram", conversation="7", text="hello"))
        await channel.close()

    assert failed.value.doubtful
    assert failed.value.retry is None
    assert len(tries) == 1


async def test_answers_are_still_sent_after_polling_was_stopped(fake: FakeTelegram) -> None:
    channel = bot(fake)
    await channel.stop()

    await channel.send(Outbound(channel="telegram", conversation="7", text="hello"))
    await channel.close()

    assert [one["text"] for one in fake.sent] == ["hello"]
