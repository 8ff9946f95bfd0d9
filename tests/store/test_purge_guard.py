"""Whoever read a text before it was purged cannot write it back, in this process or another."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import weft
from weft.errors import PurgedText
from weft.types.envelope import Inbound, Outbound
from weft.types.secret import fingerprint

from samples import all_bytes, assistant, user

TEXT = 'hunter2 "swordfish" é'
MARK = f"[purged:{fingerprint(TEXT)}]"

WRITER = """
import asyncio, json, sys
import weft

async def main(path, text):
    async with await weft.open(path) as store:
        session = (await store.sessions.find_or_create("a", "b", "c")).id
        turn = await store.turns.begin(session, f"my password is {text}")
        await store.memory.create_block("iris", "other")
        document = await store.memory.get_block("iris", "other")
        print("began", flush=True)
        sys.stdin.readline()  # the purge happens here, in another process
        call = weft.ToolCall(id="1", name="look", arguments={"with": [text], "raw": json.dumps({"a": text})})
        await store.turns.step(turn, weft.Message(role="assistant", content="", tool_calls=(call,)))
        result = await store.turns.save_result(session, "look", f"a long result with {text}")
        receipt = weft.Receipt(warnings=(f"it said {text}",))
        exchange = (
            weft.Message(role="user", content=f"my password is {text}"),
            weft.Message(role="assistant", content="", tool_calls=(call,)),
            weft.Message(role="tool", content=json.dumps({"got": text}), tool_call_id="1"),
            weft.Message(role="assistant", content=f"It is {text}."),
        )
        await store.turns.finish(turn, receipt, *exchange, reply=f"It is {text}.")
        await store.facts.set("a:c", "password", text)
        await store.summaries.add("a", "c", f"About {text}.")
        await store.memory.insert_archival("iris", f"note {text}")
        document.append_text(f"{text}!")
        refused = []
        for name, write in {
            "persist": store.memory.persist_block("iris", "other"),
            "append": store.memory.append_to_block("iris", "other", text),
            "create": store.memory.create_block("iris", "new", text=text),
        }.items():
            try:
                await write
            except weft.StoreError as error:
                refused.append(type(error).__name__)
        await store.memory.append_to_block("iris", "other", "harmless")
        print(*refused, flush=True)

asyncio.run(main(*sys.argv[1:]))
"""


async def test_a_turn_and_an_edit_of_another_process_that_began_before_the_purge_write_nothing_back(
    tmp_path: Path,
) -> None:
    path = tmp_path / "weft.db"
    with subprocess.Popen(  # noqa: ASYNC220 - nothing else runs in this loop
        [sys.executable, "-c", WRITER, str(path), TEXT],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as writer:
        assert writer.stdin is not None
        assert writer.stdout is not None
        assert writer.stdout.readline() == "began\n"
        async with await weft.open(path) as store:
            await store.purge(TEXT)

            writer.stdin.write("go\n")
            writer.stdin.flush()
            assert writer.stdout.readline().split() == ["PurgedText"] * 3
            assert writer.wait() == 0

            session = (await store.sessions.find_or_create("a", "b", "c")).id
            said = [message.content for message in await store.messages.all(session)]
            assert said == [f"my password is {MARK}", "", f'{{"got": "{MARK}"}}', f"It is {MARK}."]
            assert await store.facts.get("a:c", "password") == MARK
            assert await store.memory.get_rendered_content("iris", "other") == "harmless"
            assert await store.memory.search("iris", "swordfish") == []
    assert b"hunter2" not in all_bytes(tmp_path)
    assert b"swordfish" not in all_bytes(tmp_path)


async def test_a_text_of_which_a_block_has_the_beginning_already_is_refused_as_a_whole(
    tmp_path: Path,
) -> None:
    async with await weft.open(tmp_path / "weft.db") as store, await weft.open(tmp_path / "weft.db") as other:
        await store.memory.create_block("iris", "notes")
        await store.memory.update_block_text("iris", "notes", "token: hunter1111")
        document = await other.memory.get_block("iris", "notes")
        assert document is not None
        version = document.version
        await store.purge("hunter2222")

        with pytest.raises(PurgedText, match="purged a short time ago"):
            await other.memory.update_block_text("iris", "notes", "token: hunter2222", base=version)
        document.replace_text("1111", "2222")
        with pytest.raises(PurgedText, match="purged a short time ago"):
            await other.memory.persist_block("iris", "notes")

        assert await store.memory.get_rendered_content("iris", "notes") == "token: hunter1111"
        assert await other.memory.get_rendered_content("iris", "notes") == "token: hunter1111"


async def test_messages_that_wait_in_the_memory_of_a_dispatcher_are_masked_when_they_are_written(
    store: weft.Store, tmp_path: Path
) -> None:
    session = (await store.sessions.find_or_create("t", "c", "7")).id
    inbox_id = await store.mailbox.receive(Inbound(channel="t", conversation="c", sender="7", text=TEXT))
    [waiting] = await store.mailbox.list_waiting()

    await store.purge(TEXT)
    turn = await store.turns.begin(session, waiting.message.text or "", inbox_id=inbox_id or "")
    await store.turns.finish(turn, weft.Receipt(), user(TEXT), assistant(f"so: {TEXT}"), reply=TEXT)
    await store.mailbox.enqueue(Outbound(channel="t", conversation="c", text=TEXT))

    assert [message.content for message in await store.messages.all(session)] == [MARK, f"so: {MARK}"]
    assert b"hunter2" not in all_bytes(tmp_path)


async def test_a_purged_text_is_guarded_for_a_day_and_then_its_length_is_forgotten(
    store: weft.Store, sql: Callable[..., Any]
) -> None:
    session = (await store.sessions.find_or_create("a", "b", "c")).id
    await store.purge(TEXT)
    assert sql("select length from purges") == [(len(TEXT),)]

    sql("update purges set at = at - 90000")
    await store.messages.append(session, user(TEXT))
    [(at,)] = sql("select at from purges")
    await store.mailbox.delete_old(at + 90_000)

    assert [message.content for message in await store.messages.all(session)] == [TEXT], "it is new text"
    assert sql("select length from purges") == [(None,)]


@pytest.mark.parametrize("text", ["507f1f77bcf86cd799439011", "2026-10-05T12:00"])
async def test_a_purged_text_with_the_form_of_an_id_or_a_time_leaves_messages_and_calls(
    store: weft.Store, text: str
) -> None:
    session = (await store.sessions.find_or_create("a", "b", "c")).id
    call = weft.ToolCall(id="1", name="look", arguments={"key": text})
    said = [user(text), weft.Message(role="assistant", content="", tool_calls=(call,))]
    await store.messages.append(session, *said)

    await store.purge(text)
    await store.messages.append(session, *said)

    kept = await store.messages.all(session)
    mark = f"[purged:{fingerprint(text)}]"
    assert [message.content for message in kept if message.role == "user"] == [mark, mark]
    assert [one.arguments for message in kept for one in message.tool_calls] == [{"key": mark}] * 2
    assert await store.check() == []
